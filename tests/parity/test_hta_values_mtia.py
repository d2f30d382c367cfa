"""A6 to A14: values that HTA's own tests expect for MTIA, by their id in tests/hta_values/ids.py.

Only HTA's repository has the trace for A6 to A13, mtia_trace_single_rank. A trace of eleven events
reproduces each situation: two streams, commands that a runFunction submits, a copy, and a wait on
the device. HTA was run on this trace, too. If its number differs, the docstring states it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql import TraceAnalysis, TraceStore

if TYPE_CHECKING:
    from collections.abc import Iterator

MUL = "customized_fba_mul_const-dtype_Float"


@pytest.fixture
def mtia(trace_path: Callable[[str], Path], tmp_path: Path) -> Iterator[TraceAnalysis]:
    """Ingest two multiplications on stream 1, and a copy and a merge on stream 102."""
    trace = {0: str(trace_path("mtia_commands.json"))}
    with TraceAnalysis(trace, store=tmp_path / "mtia.store") as opened:
        yield opened


def rows(frame: pd.DataFrame | None, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of a frame as tuples."""
    assert frame is not None
    return list(frame[list(columns)].itertuples(index=False, name=None))


def test_a6_temporal_breakdown(mtia: TraceAnalysis) -> None:
    """Of 70 µs, 35 µs are computation and 10 µs copying; HTA counts a wait of 8 µs too (Q19)."""
    (row,) = mtia.get_temporal_breakdown().to_dict("records")
    assert row == {
        "rank": 0,
        "idle_time(us)": 25.0,
        "compute_time(us)": 35.0,
        "non_compute_time(us)": 10.0,
        "kernel_time(us)": 70.0,
        "idle_time_pctg": 35.71,
        "compute_time_pctg": 50.0,
        "non_compute_time_pctg": 14.29,
    }


def test_a7_kernel_breakdown(mtia: TraceAnalysis) -> None:
    """Computation comes first, and the copy is a dma_request.

    HTA lists event_wait as computation (Q19).
    """
    types, kernels = mtia.get_gpu_kernel_breakdown(include_memory_kernels=True)
    assert rows(types, "kernel_type", "sum") == [("COMPUTATION", 35.0), ("MEMORY", 10.0)]
    assert rows(kernels, "kernel_type", "name", "sum (us)") == [
        ("COMPUTATION", MUL, 30.0),
        ("COMPUTATION", "merge", 5.0),
        ("MEMORY", "dma_request", 10.0),
    ]


def test_a8_queue_lengths(mtia: TraceAnalysis) -> None:
    """The queues of both streams grow and shrink twice; HTA misses the launch of the copy (Q37)."""
    summary = mtia.get_queue_length_summary([0])
    assert summary is not None
    assert list(summary.index) == [(0, 1), (0, 102)]
    values = [4, 0.5, pytest.approx(0.57735, abs=1e-5), 0, 0, 0.5, 1, 1]
    assert summary.to_numpy().tolist() == [values, values]


def test_a9_time_at_a_full_queue(mtia: TraceAnalysis) -> None:
    """Each stream has a row with its share of the trace's 100 µs.

    HTA returns only the last stream (Q33), with a share of 95 µs (Q18).
    """
    blocked = mtia.get_time_spent_blocked_on_full_queue(
        mtia.get_queue_length_time_series([0]), max_queue_length=1
    )
    columns = (
        "stream",
        "duration_at_max_queue_length",
        "relative_duration_at_max_queue_length",
    )
    assert rows(blocked, *columns) == [(1, 33.0, 0.33), (102, 25.0, 0.25)]


def test_a10_idle_time(mtia: TraceAnalysis) -> None:
    """Stream 1 waits for the host and stream 102 for a kernel, and the ratios of each sum to 1."""
    idle, stats = mtia.get_idle_time_breakdown(ranks=[0], show_idle_interval_stats=True)
    assert rows(idle, "stream", "idle_category", "idle_time", "idle_time_ratio") == [
        (1, "host_wait", 10.0, 1.0),
        (1, "other", 0.0, 0.0),
        (102, "kernel_wait", 5.0, 1.0),
        (102, "other", 0.0, 0.0),
    ]
    assert stats is not None
    assert rows(stats, "stream", "count", "mean")[0] == (1, 1, 10.0)


def test_a11_launches(mtia: TraceAnalysis) -> None:
    """A command that starts before its call returns has no delay."""
    launches = mtia.get_cuda_kernel_launch_stats()[0].set_index("correlation")
    assert list(launches.loc[4]) == [12.0, 5.0, 0.0]
    assert list(launches.loc[2]) == [4.0, 10.0, 4.0]


def test_a12_operators_and_their_delays(mtia: TraceAnalysis) -> None:
    """The mean delay is 3.5 µs from operator to launch, and 16.5 µs from launch to command."""
    frame = mtia.get_aten_op_kernels_and_delay(
        sort_by=["occurrence_count", "avg_aten_op_launch_delay"]
    )[0]
    assert [tuple(row) for row in frame.itertuples(index=False, name=None)] == [
        ("aten::mul", MUL, 2, 3.5, 16.5)
    ]


def test_a13_frames_of_mtia(mtia: TraceAnalysis, jobs_store: TraceStore) -> None:
    """The device is MTIA, times start at 0, host rows have no stream, and launches are linked."""
    (device,) = mtia.store.run("device_type", runs=[mtia.run]).records()
    assert device["device_type"] == "MTIA"
    with TraceAnalysis(store=jobs_store.path, run="hta_mtia_inference") as real:
        for trace in (mtia.t, real.t):
            trace.decode_symbol_ids(use_shorten_name=False)
            frame = trace.get_trace(trace.get_ranks()[0])
            assert (frame["ts"] >= 0).all()
            assert (frame["stream"][frame["s_cat"].isin(["cpu_op", "mtia_runtime"])] <= 0).all()
            on_device = frame[frame["stream"] >= 0]
            assert (on_device["s_name"] == "dma_request").any()
            assert (on_device["correlation"] > 0).any()


def test_a14_inference_has_no_steps(jobs_store: TraceStore) -> None:
    """Without steps, excluding the last step excludes nothing."""
    with TraceAnalysis(store=jobs_store.path, run="hta_mtia_inference") as job:
        assert job.get_profiler_steps() == []
        assert job.t.get_iterations() == []
        job.t.align_and_filter_trace(include_last_profiler_step=False)
        rows = len(job.t.get_trace(0))
        job.t.align_and_filter_trace(include_last_profiler_step=True)
        assert rows == len(job.t.get_trace(0)) == 10346 + 1696 + 1313 + 823
