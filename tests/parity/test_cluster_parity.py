"""Steps and utilization of all ranks of the public jobs match a brute-force computation."""

from __future__ import annotations

from collections import defaultdict

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import JOBS

Spans = list[tuple[int, int]]


def union(spans: Spans, start: int, end: int) -> int:
    """Return the time within a window that is covered by at least one span."""
    total, reached = 0, start
    for a, b in sorted(spans):
        total += max(0, min(b, end) - max(a, reached))
        reached = max(reached, b)
    return total


def ops_of(store: TraceStore, job: str, rank: int) -> dict[str, list[tuple[int, int, int | None]]]:
    """Return class ─▶ start, end and step of each device operation.

    The step is that of the launch, if the rank has launches.
    """
    rows = store.sql(
        "SELECT class, ts, ts + dur, step, launch_id IS NOT NULL FROM gpu_ops "
        "WHERE run = $run AND rank = $rank AND class <> 'sync' AND NOT is_suspect AND dur >= 0",
        {"run": job, "rank": rank},
    ).rows()
    has_launches = any(row[4] for row in rows)
    found = defaultdict(list)
    for kind, start, end, step, is_launched in rows:
        found[kind].append((start, end, step if is_launched or not has_launches else None))
    return found


@pytest.mark.parametrize("job", JOBS)
def test_steps_of_the_device_follow_each_other(job: str, jobs_store: TraceStore) -> None:
    """The times of each device step are as expected, and its parts add up to its duration."""
    result = jobs_store.run("cluster_step_trace", runs=[job], include_last_profiler_step=True)
    found = {(row["rank"], row["step"]): row for row in result.arrow().to_pylist()}
    for row in found.values():
        parts = [row[f"{name}_ns"] for name in ("iteration_interval", "forward_backward", "tail")]
        assert None in parts or sum(parts) == row["total_ns"]
        assert all(part is None or part >= 0 for part in parts)
    if not found:
        return
    rank = min(rank for rank, _ in found)
    ops = ops_of(jobs_store, job, rank)
    computing, talking = ops["computation"], ops["communication"]
    ends = 0
    steps = jobs_store.sql(
        "SELECT step, ts, ts + dur FROM steps WHERE run = $run AND rank = $rank ORDER BY ts, step",
        {"run": job, "rank": rank},
    ).rows()
    for step, start, end in steps:
        launched = [b for of_class in ops.values() for _, b, of in of_class if of == step]
        begins = max(start, ends) if ends else start
        ends = max(begins, end, *launched)
        row = found[rank, step]
        assert row["total_ns"] == ends - begins
        computed = union([(a, b) for a, b, _ in computing], begins, ends)
        busy = union([(a, b) for a, b, _ in (*computing, *talking)], begins, ends)
        assert row["computation_ns"] == computed
        assert row["communication_alone_ns"] == busy - computed


@pytest.mark.parametrize("job", JOBS)
def test_buckets_sum_to_the_busy_time_and_parts_to_the_step(
    job: str, jobs_store: TraceStore
) -> None:
    """Time buckets sum to the busy time, and the parts of a step sum to the step."""
    busy: dict[int, int] = defaultdict(int)
    for row in jobs_store.run("utilization_over_time", runs=[job]).arrow().to_pylist():
        busy[row["rank"]] += row["busy_ns"] or 0
        assert row["busy_pct"] is None or row["busy_pct"] <= 100
    for rank in list(busy)[:2]:
        spans = [(a, b) for of in ops_of(jobs_store, job, rank).values() for a, b, _ in of]
        assert busy[rank] == union(spans, min(spans)[0], max(b for _, b in spans))
    for row in jobs_store.run("cluster_overview", runs=[job]).arrow().to_pylist():
        parts = ("compute_ns", "transfer_ns", "wait_ns", "memory_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["step_ns"]
    assert len(jobs_store.run("pipeline_stages", runs=[job])) == 0
