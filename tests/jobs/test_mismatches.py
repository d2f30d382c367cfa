"""In planted jobs, exactly the ranks that run a different collective are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from tests.jobs.conftest import Jobs
from tests.jobs.kinds import DP, KINDS, TP
from tests.jobs.tables import database, derive, fill, rows_of
from tests.jobs.traces import capture

OUT_OF_STEP = {
    "extra": replace(DP, extra_collective={1: 3}),
    "extra, without seq": replace(DP, extra_collective={1: 3}, metadata="without seq"),
    "extra, tp in dp": replace(TP, extra_collective={5: 3}, starts_late={0: 3_000_000}),
    "other type": replace(DP, other_type={2: 3}),
    "operators tell": replace(DP, other_type={2: 3}, metadata="operator"),
}

LOST = {"missing in the middle": (1, 1), "missing without seq": (1, 1)}
"""Run ─▶ rank whose trace lost events, and number of lost events."""


def mismatches(con: duckdb.DuckDBPyConnection, run: str) -> list[dict[str, Any]]:
    """Return the rows of ``collective_mismatches`` for a run."""
    found = con.sql("FROM collective_mismatches(runs := [$run])", params={"run": run})
    return list(found.to_arrow_table().to_pylist())


def findings(con: duckdb.DuckDBPyConnection, run: str) -> list[tuple[Any, ...]]:
    """Return the findings about mismatched or missing collectives in a run."""
    return con.execute(
        "SELECT severity, finding, value FROM findings(runs := [$run]) "
        "WHERE finding IN ('collectives_differ', 'collectives_missing') ORDER BY ALL",
        {"run": run},
    ).fetchall()


@pytest.fixture(scope="module")
def out_of_step(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Simulate jobs in which one rank runs a different collective."""
    with database(tmp_path_factory.mktemp("desync")) as con:
        fill(con, rows_of({run: (job, capture(job)) for run, job in OUT_OF_STEP.items()}))
        derive(con)
        yield con


@pytest.mark.parametrize("run", KINDS)
def test_ranks_in_step_have_none(jobs: Jobs, run: str) -> None:
    """If all ranks run the same collectives, no mismatch is reported, even for partial captures.

    A lost event is reported as a missing collective.
    """
    found = mismatches(jobs.con, run)
    rank, count = LOST.get(run, (None, 0))
    assert [(row["rank"], row["differs_in"]) for row in found] == [(rank, "missing")] * count
    assert findings(jobs.con, run) == [("warning", "collectives_missing", 1.0)] * count


@pytest.mark.parametrize("run", [run for run, job in OUT_OF_STEP.items() if job.extra_collective])
def test_a_rank_that_runs_one_more_meets_the_wrong_ones(
    out_of_step: duckdb.DuckDBPyConnection, run: str
) -> None:
    """An extra small all-reduce is reported against the large one that other ranks run next."""
    ((rank, step),) = OUT_OF_STEP[run].extra_collective.items()
    (row,) = mismatches(out_of_step, run)
    assert (row["rank"], row["step"], row["differs_in"]) == (rank, step, "in_elems, out_elems")
    assert (row["value"], row["majority_value"]) == (
        "all_reduce of 1 Float",
        "all_reduce of 1048576 Float",
    )
    assert row["majority_count"] == 3
    assert row["is_first"]
    assert f"Rank {rank} runs all_reduce of 1 Float, but 3 ranks of group" in row["message"]
    assert findings(out_of_step, run) == [("error", "collectives_differ", 1.0)]


@pytest.mark.parametrize("run", [run for run, job in OUT_OF_STEP.items() if job.other_type])
def test_a_rank_with_elements_of_another_type(
    out_of_step: duckdb.DuckDBPyConnection, run: str
) -> None:
    """Both reductions with a different element type are reported, and the first is marked."""
    rows = mismatches(out_of_step, run)
    assert [(r["rank"], r["step"], r["differs_in"], r["is_first"]) for r in rows] == [
        (2, 3, "elem_type", True),
        (2, 3, "elem_type", False),
    ]
    assert {row["value"] for row in rows} == {"all_reduce of 1048576 BFloat16"}
    assert findings(out_of_step, run) == [("error", "collectives_differ", 2.0)]
