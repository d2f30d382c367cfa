"""Queues and bandwidth of every public job match a brute force and HTA.

HTA's numbers may differ only if the trace has a countable cause: operations whose launch HTA does
not know by name or that have no launch (Q60), several points at one time, profiler steps on the
device (Q12, Q15), or float residues (Q35).
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pandas as pd
import pytest

from hta_sql import TraceStore
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.parity.jobs import EXACT, HTA, JOBS

pytestmark = pytest.mark.skipif(not JOBS, reason="the expected numbers are not here")

SCOPES = {"all": True, "default": False}

HTA_LAUNCHES = (
    *("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"),
    *("cudaMemcpyAsync", "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution"),
    *("hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync"),
    "hipMemcpyWithStream",
)

CAUSES = """
WITH
    ops AS (
        SELECT g.run, g.rank, g.device, g.stream, g.ts, least(g.ts, g.launch_ts) AS queued, g.launch_ts > g.ts AS is_skewed,
            g.launch_id, c.name IN (SELECT unnest($launches)) AS is_known
        FROM lib.scoped_gpu_ops(NULL, NULL, NULL, false) AS g
        LEFT JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.launch_id
    ),
    moments AS (
        SELECT o.run, o.rank, o.stream, o.ts AS moment FROM ops AS o WHERE o.launch_id IS NOT NULL
        UNION ALL
        SELECT o.run, o.rank, o.stream, o.queued FROM ops AS o WHERE o.launch_id IS NOT NULL
    ),
    ties AS (
        SELECT m.run, m.rank, m.stream, count(*) - count(DISTINCT m.moment) AS tied
        FROM moments AS m
        GROUP BY ALL
    )
SELECT o.run, o.rank, o.stream,
    count(*) FILTER (NOT coalesce(o.is_known, o.launch_id IS NULL)) AS unknown_launches,
    count(*) FILTER (o.launch_id IS NULL) AS unlinked,
    count(*) FILTER (o.is_skewed) AS skewed,
    any_value(t.tied) AS tied
FROM ops AS o
LEFT JOIN ties AS t ON t.run = o.run AND t.rank = o.rank AND t.stream = o.stream
GROUP BY ALL
"""

GPU_STEPS = "SELECT DISTINCT run FROM annotations WHERE on_gpu AND name LIKE 'ProfilerStep%'"


def brute_force(job: str) -> dict[str, Any]:
    """Return the brute-force result for a job by file name."""
    ranks = json.loads((EXACT / f"{job}.json").read_text(encoding="utf-8"))["ranks"]
    return {rank["file"]: rank for rank in ranks.values()}


def rows(store: TraceStore, name: str, **parameters: Any) -> list[dict[str, Any]]:
    """Run an analysis on all jobs."""
    records: list[dict[str, Any]] = store.run(name, **parameters).arrow().to_pylist()
    return records


@pytest.mark.parametrize("scope", SCOPES)
def test_every_queue_has_the_brute_forces_longest_length_and_number_of_operations(
    scope: str, jobs_store: TraceStore
) -> None:
    """The longest queue of each stream matches, and each operation changes the queue twice."""
    found: dict[tuple[str, str], dict[tuple[str, str], tuple[int, int]]] = defaultdict(dict)
    files = {
        (run, rank): (run.split("-capture")[0], source.rsplit("/", 1)[-1])
        for run, rank, source in jobs_store.sql("SELECT run, rank, source FROM ranks").rows()
    }
    for row in rows(jobs_store, "queue_length_summary", include_last_profiler_step=SCOPES[scope]):
        if row["op_count"]:
            lane = str(row["device"]), str(row["stream"])
            found[files[row["run"], row["rank"]]][lane] = (
                row["max_length"] or 0,
                2 * row["op_count"],
            )
    streams = 0
    for job in JOBS:
        if job.startswith("ascend"):
            continue  # launched from a task queue, which the brute force does not know
        for file, rank in brute_force(job).items():
            want = {
                (lane["device"], lane["stream"]): (lane["max"], lane["n_change_points"])
                for lane in rank[scope]["queue"]
            }
            assert found[job, file] == want, file
            streams += len(want)
    assert streams > 150


@pytest.fixture(scope="module")
def causes(jobs_store: TraceStore) -> dict[tuple[str, int, int], dict[str, int]]:
    """Count the causes of HTA's differences: (job, rank, stream) ─▶ cause ─▶ count."""
    found = jobs_store.sql(CAUSES, {"launches": list(HTA_LAUNCHES)}).arrow().to_pylist()
    by_gpu_steps = {run for (run,) in jobs_store.sql(GPU_STEPS).rows()}
    for row in found:
        row["gpu_steps"] = int(row["run"] in by_gpu_steps)
    return {(row["run"], row["rank"], row["stream"]): row for row in found}


def answered(name: str) -> list[str]:
    """Return the jobs for which HTA returned rows of a frame."""
    return [job for job in JOBS if not hta_frame(job, name).empty]


def hta_frame(job: str, name: str) -> Any:
    """Return HTA's frame, which is empty if HTA crashed or returned nothing."""
    path = HTA / job / f"{name}.parquet"
    if not path.exists():
        return pd.DataFrame()
    frame = pd.read_parquet(path)
    return frame if "rank" in frame.columns else frame.reset_index()


FLOAT_US = 0.25
"""Resolution of HTA's float64 epoch times, a quarter of a microsecond (Q6)."""

BY_FLOATS = {"hta_ns_resolution"}
"""Jobs with nanosecond times, whose points HTA's rounding merges or reorders."""

NAMES = ("unknown_launches", "unlinked", "skewed", "tied", "gpu_steps")


@pytest.mark.parametrize("job", answered("queue_length_summary"))
def test_queue_summaries_are_htas_where_nothing_explains_a_difference(
    job: str, jobs_store: TraceStore, causes: dict[tuple[str, int, int], dict[str, int]]
) -> None:
    """The columns, and the statistics of streams without a cause of differences, equal HTA's."""
    hta = hta_frame(job, "queue_length_summary")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        ours: Any = analysis.get_queue_length_summary(analysis.store.ranks(job))
    ours.columns = pd.Index(["_".join(column) for column in ours.columns])
    assert set(ours.columns) == set(hta.columns) - {"rank", "stream"}
    theirs = hta.set_index(["rank", "stream"])
    for key, row in theirs.iterrows():
        rank, stream = key
        why = causes[job, rank, stream]
        if any(why[name] for name in NAMES):
            continue
        near = 1e-5 if job in BY_FLOATS else 1e-12
        same = [
            value == pytest.approx(row[name], rel=near) for name, value in ours.loc[key].items()
        ]
        assert all(same), (key, ours.loc[key].to_dict(), row.to_dict())
    for rank, stream in set(ours.index) - set(theirs.index):
        assert any(causes[job, rank, stream][name] for name in NAMES), (rank, stream)


@pytest.mark.parametrize(
    "job", [job for job in answered("queue_length_time_series") if job not in BY_FLOATS]
)
def test_queue_series_are_htas_point_by_point_where_nothing_explains_a_difference(
    job: str, jobs_store: TraceStore, causes: dict[tuple[str, int, int], dict[str, int]]
) -> None:
    """The series of each stream without a cause of differences equals HTA's point by point."""
    hta = hta_frame(job, "queue_length_time_series")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        ours: Any = analysis.get_queue_length_time_series(analysis.store.ranks(job))
    for (rank, stream), theirs in hta.groupby(["_rank", "stream"]):
        if any(causes[job, rank, stream][name] for name in NAMES):
            continue
        mine = ours[rank][ours[rank]["stream"] == stream]
        assert mine.index.tolist() == theirs["index"].tolist()
        assert mine["queue_length"].tolist() == theirs["queue_length"].tolist()
        steps = mine["ts"].diff().to_numpy()[1:] - theirs["ts"].diff().to_numpy()[1:]
        assert abs(steps).max(initial=0) <= FLOAT_US


@pytest.mark.parametrize(
    ("job", "max_length"),
    [
        (job, limit)
        for limit in (4, 100, 1024)
        for job in answered(f"time_spent_blocked_on_full_queue_{limit}")
    ],
)
def test_full_queues_cover_htas_and_the_streams_that_it_loses(
    job: str,
    max_length: int,
    jobs_store: TraceStore,
    causes: dict[tuple[str, int, int], dict[str, int]],
) -> None:
    """Full-queue times equal HTA's for the one stream per rank that it reports (Q33)."""
    hta = hta_frame(job, f"time_spent_blocked_on_full_queue_{max_length}")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        series: Any = analysis.get_queue_length_time_series(analysis.store.ranks(job))
        ours: Any = analysis.get_time_spent_blocked_on_full_queue(series, max_length)
    mine = ours.set_index(["rank", "stream"])["duration_at_max_queue_length"]
    assert mine.index.is_unique
    for row in hta.itertuples():
        why = causes[job, row.rank, row.stream]
        # Points at the same time have no duration, so ties do not matter.
        if any(why[name] for name in NAMES if name != "tied"):
            continue
        assert mine[row.rank, row.stream] == pytest.approx(
            row.duration_at_max_queue_length, abs=FLOAT_US if job in BY_FLOATS else 0.01
        )


RESIDUES = {"hta_trace_diff_test"}
"""Jobs in which HTA's float sums do not return to 0 (Q35), so that it counts residues."""


BY_DEVICE_STEPS = {"nanogpt_8rank_h100"}
"""Jobs in which HTA excludes a different last step, because the device has copies of steps."""


@pytest.mark.parametrize(
    "job",
    [j for j in answered("memory_bw_summary") if j not in RESIDUES | BY_DEVICE_STEPS],
)
def test_bandwidth_summaries_are_htas_where_nothing_explains_a_difference(
    job: str, jobs_store: TraceStore
) -> None:
    """The bandwidth statistics of each copy kind without a cause of differences equal HTA's."""
    hta = hta_frame(job, "memory_bw_summary")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        ours: Any = analysis.get_memory_bw_summary(analysis.store.ranks(job))
    ours.columns = pd.Index(["_".join(column) for column in ours.columns])
    unlinked = jobs_store.sql(
        "SELECT DISTINCT rank, name[:11] FROM lib.scoped_gpu_ops([$run], NULL, NULL, false) "
        "WHERE class = 'memory' AND launch_id IS NULL",
        {"run": job},
    ).rows()
    for key, row in hta.set_index(["rank", "name"]).iterrows():
        rank, name = key
        if any(rank == other and kind.startswith(name) for other, kind in unlinked):
            continue  # Q60
        same = [
            value == pytest.approx(row[column], abs=1e-6, nan_ok=True)
            for column, value in ours.loc[key].items()
        ]
        assert all(same), (key, ours.loc[key].to_dict(), row.to_dict())


def test_most_streams_have_nothing_that_explains_a_difference(
    jobs_store: TraceStore, causes: dict[tuple[str, int, int], dict[str, int]]
) -> None:
    """Most streams have no cause for a difference, so they are compared with HTA."""
    assert {run for (run,) in jobs_store.sql(GPU_STEPS).rows()} >= BY_DEVICE_STEPS
    compared = [
        (job, rank, stream)
        for job in JOBS
        if not (hta := hta_frame(job, "queue_length_summary")).empty
        for rank, stream in zip(hta["rank"], hta["stream"], strict=True)
        if not any(causes[job, rank, stream][name] for name in NAMES)
    ]
    assert len(compared) > 50
    assert len({job for job, _, _ in compared}) > 10
