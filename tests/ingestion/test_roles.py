"""Roles that traces state in their ``distributedInfo``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql

if TYPE_CHECKING:
    from pathlib import Path

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}


def roles(folder: Path, infos: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Ingest one trace per rank and return the role columns of ``ranks``."""
    for rank, info in enumerate(infos):
        content = {"distributedInfo": {"rank": rank, **info}, "traceEvents": [EVENT]}
        (folder / f"rank{rank}.json").write_text(json.dumps(content), encoding="utf-8")
    with hta_sql.ingest(folder, folder / "job.store") as store:
        return store.sql("SELECT rank, role, role_rank FROM ranks ORDER BY rank").rows()


def test_roles_that_traces_state_are_columns_of_ranks(tmp_path: Path) -> None:
    """The role and the rank within the role become columns of ``ranks``."""
    stated = [
        {"role": "trainer", "role_rank": 0},
        {"role": "trainer", "role_rank": 1},
        {"role": "generator", "role_rank": 0},
    ]
    assert roles(tmp_path, stated) == [(0, "trainer", 0), (1, "trainer", 1), (2, "generator", 0)]


@pytest.mark.parametrize("info", [{}, {"role": None}, {"role_rank": 1 << 40}, {"role_rank": "a"}])
def test_a_role_that_is_not_stated_is_null(tmp_path: Path, info: dict[str, Any]) -> None:
    """A role or role rank that is missing or invalid is NULL."""
    assert roles(tmp_path, [info, {}]) == [(0, None, None), (1, None, None)]
