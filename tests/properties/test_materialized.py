"""Materialized answers equal computed ones for edge-case traces, including their row order."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from hta_sql.library.answers import answers
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.materialize import materialize, materialize_answers
from hta_sql.store.disk.manifest import CATALOG
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import OF_NO_RUN, SEED

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["job"]

ALL = sorted(answers(load_library()))

Shown = dict[str, tuple[list[str], list[str], list[tuple[Any, ...]]]]
"""Analysis ─▶ columns, types and rows of its view."""


def shown(store: Path, names: list[str]) -> Shown:
    """Query the views of analyses in the catalog, as a DuckDB client does."""
    with duckdb.connect(str(store / CATALOG), read_only=True, config={"threads": 2}) as con:
        asked = {name: con.table(name) for name in names}
        return {
            name: (view.columns, list(map(str, view.types)), view.fetchall())
            for name, view in asked.items()
        }


@pytest.mark.parametrize("job", [SEED], indirect=True)
def test_views_show_what_is_computed(job: tuple[int, TraceStore], tmp_path: Path) -> None:
    """Views return the same columns, types and rows with either or both of two runs materialized."""
    plain = Path(shutil.copytree(job[1].path, tmp_path / "plain"))
    build_catalog(plain)
    materialize(plain)
    computed = shown(plain, ALL)
    assert sum(len(rows) for _, _, rows in computed.values()) > len(ALL)
    for first, *others in (["b.run-2", "a"], ["a"]):
        store = Path(shutil.copytree(plain, tmp_path / first))
        for run in (first, *others):
            materialize_answers(store, ALL, [run])
            found = shown(store, ALL)
            assert {name for name in ALL if found[name] != computed[name]} == set()


def test_all_but_a_few_can_be_kept() -> None:
    """Only analyses that combine runs cannot be materialized."""
    library = load_library()
    left = {about.base_name for about in library.newest()} - set(ALL)
    of_several_runs = {
        *("trace_diff", "comparison", "comparability", "kpi_trends", "jobs"),
        *("serving_comparison", "predictions", "snapshot_diff"),
    }
    assert left == of_several_runs
    assert left >= OF_NO_RUN
