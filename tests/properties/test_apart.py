"""Ranks that are asked one by one, as in large stores, give what one question of all of them gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.library.objects import load_library
from hta_sql.store import trace_store
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import SEED, options_of

if TYPE_CHECKING:
    from hta_sql.store.trace_store import TraceStore

__all__ = ["job"]

APART = [a.base_name for a in load_library().newest() if a.facts.get("Ranks") == "apart"]


@pytest.mark.parametrize("job", [SEED], indirect=True)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "modules" else [pytest.mark.slow]) for n in APART],
)
def test_ranks_apart_are_the_whole(
    job: tuple[int, TraceStore], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row, in the same order; also where the caller narrows it."""
    _, store = job
    scopes: tuple[dict[str, Any], ...] = ({}, {"runs": ["b.run-2"]}, {"ranks": [0, 3]})
    whole = [store.run(name, **options_of(name), **scope).arrow() for scope in scopes]
    assert whole[0].num_rows
    monkeypatch.setattr(trace_store, "APART_EVENTS", 1)
    for scope, expected in zip(scopes, whole, strict=True):
        assert store.run(name, **options_of(name), **scope).arrow().equals(expected), scope


def test_there_are_some() -> None:
    """What is dear and of each rank by itself says so."""
    assert {"idle_causes", "modules", "operator_table"} <= set(APART)
