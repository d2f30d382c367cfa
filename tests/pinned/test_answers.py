"""No number of an analysis changes unnoticed: all columns are compared on jobs of every kind."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hta_sql.authoring.golden import Case
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
    write_runs,
)
from tests.pinned.changed import changed_rows
from tests.pinned.jobs import make_catalog
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    import duckdb

CALLS = queries_of(JOBS)


def catalog(
    factory: pytest.TempPathFactory, place: str
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Ingest all runs of a place into one catalog, once for all processes."""

    def make(store: Path) -> None:
        make_catalog(store.parent, write_runs(place, store.parent / "traces"))

    return closing(opened(made_once(factory, f"pinned_{place}", make).parent))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return the catalog of the jobs."""
    with catalog(tmp_path_factory, JOBS) as con:
        yield con


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, id=query)
        for name, queries in CALLS.items()
        for other, query in enumerate(queries)
    ],
)
def test_an_answer_is_what_was_pinned(query: str, jobs: duckdb.DuckDBPyConnection) -> None:
    """Each answer equals the pinned one.

    ``python -m tests.pinned.changed`` shows the rows that changed. After an intended change, run
    ``make pinned``, and state the change and its reason in the commit.
    """
    assert changes(answer(jobs, query), pinned()[query]) == []


@pytest.mark.slow(reason="large")
@pytest.mark.parametrize("place", CROWDS)
def test_an_answer_about_a_crowd_is_what_was_pinned(
    place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Answers about hundreds of jobs in one catalog equal the pinned ones.

    Such a catalog reveals errors that mix runs or ranks of different kinds.
    """
    with catalog(tmp_path_factory, place) as con:
        queries = [query for queries in queries_of(place).values() for query in queries]
        found = {query: answer(con, query, place) for query in queries}
    assert {
        query: digests
        for query in queries
        if (digests := changes(found[query], pinned(place)[query]))
    } == {}


def test_each_call_is_pinned_and_nothing_else() -> None:
    """Every call to an analysis and every golden case is pinned, and nothing else is."""
    for place in PLACES:
        asked = [query for queries in queries_of(place).values() for query in queries]
        assert list(pinned(place)) == asked
    assert list(pinned(GOLDEN)) == list(whole_answers())


def test_of_a_golden_case_its_call_is_asked() -> None:
    """The whole answer keeps the parameters of the golden case, but not its columns or filter."""
    asked = "SELECT a FROM x_v1(b := 'c)', d := [lower('E')]) WHERE a > 1"
    case = Case(Path("x_v1.test"), 1, "", "t.json", asked, [])
    assert whole_answer(case) == "FROM x_v1(b := 'c)', d := [lower('E')])"
    assert whole_answer(replace(case, call=f"{asked} UNION ALL FROM x_v1()")) == ""


def test_a_change_is_named_by_column_and_run() -> None:
    """A changed value or row order is reported by column and run; rounding errors are ignored."""
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


def test_a_change_is_shown_with_its_rows() -> None:
    """Of two answers, columns that came, went or differ are named, and the rows are shown."""
    before = pa.table({"run": ["a", "a"], "rank": [0, 1], "busy_ns": [5, 6], "name": ["k", "k"]})
    after = before.set_column(2, "busy_ns", pa.array([5, 9]))
    assert list(changed_rows(before, before)) == []
    assert list(changed_rows(before, after)) == [
        "column busy_ns differs in 1 of 2 rows",
        "- run='a', rank=1, busy_ns=6, name='k'",
        "+ run='a', rank=1, busy_ns=9, name='k'",
    ]
    assert list(changed_rows(before, before.drop_columns("name"))) == ["column name is gone"]
    assert "the rows are in another order" in list(changed_rows(before, before.take([1, 0])))
    assert next(iter(changed_rows(before, before.slice(0, 1)))) == "2 rows become 1"
