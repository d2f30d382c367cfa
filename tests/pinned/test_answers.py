"""No number of an analysis changes unseen: each is asked of jobs of every kind, all columns of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.authoring.golden import Case
from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.library.objects import load_library
from tests.golden_cases import TRACES
from tests.pinned.answers import (
    CROWDS,
    GOLDEN,
    JOBS,
    PLACES,
    answer,
    changes,
    digests_of,
    opened,
    pinned,
    queries_of,
    whole_answer,
    whole_answers,
    whole_of,
    write_runs,
)
from tests.pinned.jobs import make_catalog
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    import duckdb

CALLS = queries_of(JOBS)
WHOLE = whole_answers()

DEAR = {
    *("advice_v1", "comparability_v1", "comparison_v1", "kpi_trends_v1", "kpis_v1", "mfu_v1"),
    *("blocking_communication_v1", "critical_path_edges_v1", "event_arguments_v1"),
    *("roofline_v1", "step_contents_v1"),
}
"""Made of much of the others, or of many rows: a third of the time of all."""


def catalog(
    factory: pytest.TempPathFactory, place: str
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """All runs of a place in one catalog, read once for all processes."""

    def make(store: Path) -> None:
        make_catalog(store.parent, write_runs(place, store.parent / "traces"))

    return closing(opened(made_once(factory, f"pinned_{place}", make).parent))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The jobs, each of which shows something else."""
    with catalog(tmp_path_factory, JOBS) as con:
        yield con


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, marks=[pytest.mark.slow] if name in DEAR or other else [], id=query)
        for name, queries in CALLS.items()
        for other, query in enumerate(queries)
    ],
)
def test_an_answer_is_what_was_pinned(query: str, jobs: duckdb.DuckDBPyConnection) -> None:
    """Where numbers are meant to change: ``make pinned``, and say which and why."""
    assert changes(answer(jobs, query), pinned()[query]) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", CROWDS)
def test_an_answer_about_a_crowd_is_what_was_pinned(
    place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is wrong where runs and ranks of every kind stand side by side."""
    with catalog(tmp_path_factory, place) as con:
        queries = [query for queries in queries_of(place).values() for query in queries]
        found = {query: answer(con, query, place) for query in queries}
    assert {
        query: digests
        for query in queries
        if (digests := changes(found[query], pinned(place)[query]))
    } == {}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenEngine]:
    """The engine of the golden cases."""
    folder = tmp_path_factory.mktemp("golden")
    with closing(GoldenEngine(folder, load_library(), WHOLE.values(), TRACES)) as engine:
        yield engine


@pytest.mark.slow
@pytest.mark.parametrize("key", WHOLE)
def test_columns_that_a_golden_case_does_not_show(key: str, engine: GoldenEngine) -> None:
    """And its rows that are not shown."""
    found = whole_of(*engine.ask(WHOLE[key]))
    assert changes(found, pinned(GOLDEN)[key]) == []


def test_each_call_is_pinned_and_nothing_else() -> None:
    """Also of a new analysis, and of a new golden case."""
    for place in PLACES:
        asked = [query for queries in queries_of(place).values() for query in queries]
        assert list(pinned(place)) == asked
    assert list(pinned(GOLDEN)) == list(WHOLE)


def test_of_a_golden_case_its_call_is_asked() -> None:
    """With its parameters, whatever is in their texts, and without what the case makes of it."""
    asked = "SELECT a FROM x_v1(b := 'c)', d := [lower('E')]) WHERE a > 1"
    case = Case(Path("x_v1.test"), 1, "", "t.json", asked, [])
    assert whole_answer(case) == "FROM x_v1(b := 'c)', d := [lower('E')])"
    assert whole_answer(replace(case, call=f"{asked} UNION ALL FROM x_v1()")) == ""


def test_a_change_is_named_by_column_and_run() -> None:
    """A number, the order of two rows; a fraction that differs in its last digits is the same."""
    columns = ["run", "rank", "busy_ns", "share"]
    rows = [("a", 0, 5, 0.1), ("a", 1, 5, 0.2), ("b", 0, 7, 1e-17)]
    wanted = digests_of(columns, rows)
    assert wanted["rows"] == "3"
    same = [("a", 0, 5, 0.1 + 1e-17), ("a", 1, 5, 0.2), ("b", 0, 7, 0.0)]
    assert changes(digests_of(columns, same), wanted) == []

    def changed(other: Sequence[tuple[object, ...]]) -> list[str]:
        return [line.partition(":")[0] for line in changes(digests_of(columns, other), wanted)]

    assert changed([*rows[:2], ("b", 0, 8, 0.0)]) == ["column busy_ns", "run b"]
    assert changed([rows[1], rows[0], rows[2]]) == ["column rank", "column share", "run a"]
    assert changed(rows[:2]) == ["rows", *(f"column {name}" for name in columns), "run b"]
