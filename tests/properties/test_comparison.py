"""Step contents and comparisons account for all time, and do not report noise as a change."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.comparison.changes import compare_steps
from hta_sql.comparison.sides import Side
from tests.drawn_marks import visible_marks
from tests.properties.planted import NOISE, few, many
from tests.properties.traces import store_of_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hta_sql.comparison.changes import Comparison
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["few", "many"]

SEEDS = range(int(os.environ.get("HTA_SQL_PROPERTY_JOBS", "2")))

PARTS = {
    "compute": "compute_ns",
    "transfer": "exposed_transfer_ns",
    "unmatched": "exposed_unmatched_ns",
    "wait": "exposed_wait_ns",
    "memory": "exposed_memory_ns",
}

SHARES_OF_HOST_STEPS = """
    WITH windows AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.span, p.step, row_number() OVER (PARTITION BY p.run, p.rank ORDER BY p.ts) AS window_no,
            p.ts, p.ts + p.step_ns AS end_ts, p.step_ns
        FROM step_parts AS p
        WHERE NOT p.is_common
    )
    SELECT w.run, w.rank, w.step, s.part, sum(s.ns)::BIGINT AS ns
    FROM lib._step_shares('windows', NULL, NULL) AS s
    JOIN windows AS w ON w.run = s.run AND w.rank = s.rank AND w.window_no = s.window_no
    GROUP BY ALL
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(seed, marks=[pytest.mark.slow(reason="fuzz")] if seed else [])
        for seed in SEEDS
    ],
)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Ingest two runs of edge-case events."""
    with hta_sql.open(store_of_job(tmp_path_factory, request.param)) as store:
        yield store


def test_contents_sum_to_the_steps(job: TraceStore) -> None:
    """Each nanosecond of each step is in exactly one row, whatever events occur."""
    last: dict[str, Any] = {"include_last_profiler_step": True}
    sums: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in job.run("step_contents", **last).records():
        sums[row["run"], row["rank"], row["step"]] += row["self_ns"]
    steps = {
        (row["run"], row["rank"], row["step"]): row["step_ns"]
        for row in job.run("step_accounting", **last).records()
        if row["step_ns"] > 0
    }
    assert {key: ns for key, ns in sums.items() if key in steps} == steps
    assert not any(ns for key, ns in sums.items() if key not in steps)


def test_shares_of_host_steps_are_the_parts_of_step_accounting(job: TraceStore) -> None:
    """The step shares agree with step_accounting, which uses an independent algorithm."""
    overlapping = _overlapping(job)
    shares: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
    for row in job.sql(SHARES_OF_HOST_STEPS).records():
        shares[row["run"], row["rank"], row["step"]][row["part"]] = row["ns"]
    for row in job.run("step_accounting", include_last_profiler_step=True).records():
        if (row["run"], row["rank"]) in overlapping:
            continue
        found = shares.get((row["run"], row["rank"], row["step"]), {})
        expected = {part: row[column] for part, column in PARTS.items()}
        expected["idle"] = sum(row[f"idle_{where}_ns"] for where in ("before", "between", "after"))
        assert found == {part: ns for part, ns in expected.items() if ns or part in found}


def _overlapping(job: TraceStore) -> set[tuple[str, int]]:
    """Return the ranks with overlapping steps, whose shares cannot be compared."""
    found = set()
    ends: dict[tuple[str, int], int] = {}
    for row in job.sql("FROM steps ORDER BY run, rank, ts").records():
        key = row["run"], row["rank"]
        if row["ts"] < ends.get(key, row["ts"]):
            found.add(key)
        ends[key] = max(ends.get(key, 0), row["ts"] + row["dur"])
    return found


def test_rows_sum_to_parts_and_parts_to_the_step(job: TraceStore) -> None:
    """Rows sum to parts, and parts to the step, on both sides and for the difference."""
    for runs in (["a", "b.run-2"], ["b.run-2", "a"], ["a", "a"]):
        rows = job.run("comparison", runs=runs, include_last_profiler_step=True).records()
        for column in ("control_ns", "test_ns", "diff_ns"):
            step = sum(row[column] for row in rows if row["level"] == "step")
            assert sum(row[column] for row in rows if row["level"] == "part") == step
            by_part: dict[str, int] = defaultdict(int)
            for row in rows:
                by_part[row["part"]] += row[column] if row["level"] == "row" else 0
            assert all(
                by_part[row["part"]] == row[column] for row in rows if row["level"] == "part"
            )
        if runs[0] == runs[1]:
            assert not any(row["diff_ns"] or row["is_change"] for row in rows)


def compared(store: TraceStore, control: str, test: str) -> Comparison:
    """Compare two runs of a store."""
    return compare_steps(Side(store, control), Side(store, test))


def assert_unchanged(told: Comparison) -> None:
    """Assert that a comparison reports no change."""
    assert told.level == "comparable"
    assert told.step["verdict"] in ("unchanged", "within noise")
    assert told.changes == []


def test_noise_is_no_change(few: TraceStore) -> None:
    """Two runs that differ only by their seed have no change."""
    assert_unchanged(compared(few, "noise0", "noise1"))


def test_no_noise_is_a_change(many: TraceStore) -> None:
    """Ten pairs that differ only by their seed have no change, nor has one with fewer steps."""
    for control, test in [*combinations(NOISE, 2), ("noise0", "fewer_steps")]:
        assert_unchanged(compared(many, control, test))


def test_a_slower_data_loader_is_idle_time(few: TraceStore) -> None:
    """A data loader that takes 2 ms longer shows up as idle time before the next launch."""
    told = compared(few, "noise0", "loading")
    assert told.step["verdict"] == "slower"
    assert told.step["diff_ns"] == pytest.approx(2_000_000, rel=0.05)
    assert [(row["part"], row["subject"]) for row in told.changes] == [("idle", "not launched yet")]
    assert "beyond noise" in told.message
    assert visible_marks(told.rows.chart())["rule"] == 1
    assert "Cause: the device idles 2.0" in told.message
    assert "enumerate(DataLoader)" in told.message


def test_planted_changes_are_named(many: TraceStore) -> None:
    """A comparison finds kernels that are 3 % slower, added operators, and renamed collectives."""
    slower = compared(many, "noise0", "slower")
    assert slower.step["verdict"] == "slower"
    compute = next(row for row in slower.of_level("part") if row["part"] == "compute")
    assert compute["verdict"] == "slower"
    assert 1 < compute["diff_pct"] < 5
    deeper = compared(many, "noise0", "deeper")
    assert deeper.step["verdict"] == "slower"
    assert "added" in {row["verdict"] for row in deeper.changes}
    old = compared(many, "noise0", "old_names")
    collectives = [row for row in old.of_level("row") if row["part"] == "transfer"]
    assert {row["weakest_match"] for row in collectives} == {"operator"}


def test_a_comparison_is_an_object_of_known_keys(few: TraceStore) -> None:
    """Parts sum to the headline's difference; a run compared with itself has no changes."""
    told = compare_steps(Side(few, "noise0"), Side(few, "loading")).as_json()
    headline = told["headline"]
    assert headline["candidate_ns"] - headline["baseline_ns"] == headline["difference_ns"]
    assert sum(part["difference_ns"] for part in told["parts"]) == headline["difference_ns"]
    assert told["comparability"]["level"] == "comparable"
    assert told["comparability"]["reasons"] == []
    same = compare_steps(Side(few, "noise0"), Side(few, "noise0")).as_json()
    assert same["changes"] == []
    assert same["headline"]["message"].startswith("Nothing changed")


def test_a_store_compares_its_runs(few: TraceStore) -> None:
    """Comparing two runs of one store gives the same rows as comparing any two sides."""
    rows = few.run("comparison", runs=["noise0", "loading"])
    assert rows.records() == compared(few, "noise0", "loading").rows.records()
    with pytest.raises(ValueError, match="noise7"):
        few.run("comparison", runs=["noise0", "noise7"])


def test_a_side_without_steps_is_an_error(few: TraceStore) -> None:
    """The error for a side without the requested steps lists the existing steps."""
    with pytest.raises(ValueError, match="No step 99; available steps: 10-"):
        compare_steps(Side(few, "noise0"), Side(few, "noise0", steps=[99]))
    last = Side(few, "noise0").known_steps()[-1]
    with pytest.raises(ValueError, match=r"its steps: 10, 11, .* the last is excluded unless"):
        compare_steps(Side(few, "noise0"), Side(few, "noise0", steps=[last]))
    with pytest.raises(ValueError, match="not a valid rename"):
        compare_steps(Side(few, "noise0"), Side(few, "noise0"), renamed=["gemm"])
