"""TraceAnalysis has HTA's methods and returns HTA's frames.

Numbers are compared with the truth of a simulated job here, and with HTA
itself in parity/test_hta.py.
"""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hta_sql.errors import RankError
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.synthetic import Job
from tests.synthetic.counting import truth_of
from tests.trace_analysis.writing import kernel, write_trace

SIGNATURES = {
    "get_temporal_breakdown": ["visualize"],
    "get_gpu_kernel_breakdown": [
        "visualize",
        "duration_ratio",
        "num_kernels",
        "include_memory_kernels",
        "image_renderer",
    ],
    "get_idle_time_breakdown": [
        "ranks",
        "streams",
        "visualize",
        "visualize_pctg",
        "show_idle_interval_stats",
        "consecutive_kernel_delay",
    ],
    "get_comm_comp_overlap": ["visualize"],
    "get_cuda_kernel_launch_stats": [
        "ranks",
        "runtime_cutoff",
        "launch_delay_cutoff",
        "include_memory_events",
        "visualize",
    ],
}
"""Method ─▶ its parameters in HTA's order, so that positional calls work."""


@pytest.mark.parametrize(("method", "parameters"), SIGNATURES.items())
def test_methods_take_htas_parameters(method: str, parameters: list[str]) -> None:
    """Methods have HTA's parameters in HTA's order."""
    signature = inspect.signature(getattr(TraceAnalysis, method))
    assert list(signature.parameters)[1:] == parameters


def test_the_constructor_takes_htas_parameters() -> None:
    """The constructor takes HTA's parameters first, and additional ones by keyword only."""
    parameters = inspect.signature(TraceAnalysis).parameters
    by_position = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert by_position == ["trace_files", "trace_dir", "include_last_profiler_step"]


def test_temporal_breakdown_is_the_truth_in_microseconds(analysis: TraceAnalysis, job: Job) -> None:
    """The frame has HTA's columns, and the times of the simulator without the last step."""
    frame = analysis.get_temporal_breakdown()
    assert list(frame.columns) == [
        "rank",
        "idle_time(us)",
        "compute_time(us)",
        "non_compute_time(us)",
        "kernel_time(us)",
        "idle_time_pctg",
        "compute_time_pctg",
        "non_compute_time_pctg",
    ]
    for row, truth in zip(frame.to_dict(orient="records"), truth_of(job).ranks, strict=True):
        want = truth.default.time
        assert row["rank"] == truth.rank
        assert row["idle_time(us)"] == want.idle_ns / 1000
        assert row["compute_time(us)"] == want.compute_ns / 1000
        assert row["non_compute_time(us)"] == want.non_compute_ns / 1000
        assert row["kernel_time(us)"] == want.span_ns / 1000
        assert row["idle_time_pctg"] == round(100 * want.idle_ns / want.span_ns, 2)


def test_the_last_profiler_step_is_included_on_request(job: Job) -> None:
    """include_last_profiler_step=True covers the whole trace."""
    with TraceAnalysis(
        trace_dir=job.files[0].parent, include_last_profiler_step=True
    ) as everything:
        frame = everything.get_temporal_breakdown()
    assert list(frame["kernel_time(us)"]) == [
        rank.all.time.span_ns / 1000 for rank in truth_of(job).ranks
    ]


def test_kernel_types_are_summed_over_ranks(analysis: TraceAnalysis, job: Job) -> None:
    """Kernel types have HTA's names, are sorted by time, and sum to the busy time of all ranks."""
    types, _ = analysis.get_gpu_kernel_breakdown()
    assert list(types.columns) == ["kernel_type", "sum", "percentage"]
    assert types["sum"].is_monotonic_decreasing
    assert "COMPUTATION overlapping MEMORY" in set(types["kernel_type"])
    sums: Counter[frozenset[str]] = Counter()
    for rank in truth_of(job).ranks:
        for classes, time_ns in rank.default.time.class_sets.items():
            sums[frozenset(classes.upper().split("+"))] += time_ns
    assert {
        frozenset(kind.split(" overlapping ")): round(time_us * 1000)
        for kind, time_us in zip(types["kernel_type"], types["sum"], strict=True)
    } == {classes: time_ns for classes, time_ns in sums.items() if time_ns}


def test_without_memory_kernels_what_runs_beside_a_copy_runs_alone(
    analysis: TraceAnalysis,
) -> None:
    """include_memory_kernels=False removes MEMORY from both frames and keeps all other time."""
    types, kernels = analysis.get_gpu_kernel_breakdown(include_memory_kernels=False)
    assert not types["kernel_type"].str.contains("MEMORY").any()
    assert set(kernels["kernel_type"]) == {"COMPUTATION", "COMMUNICATION"}
    compute = analysis.get_temporal_breakdown()["compute_time(us)"].sum()
    computing = types[types["kernel_type"].str.contains("COMPUTATION")]["sum"].sum()
    assert computing == pytest.approx(compute, rel=1e-12)


def test_others_is_a_true_row(analysis: TraceAnalysis) -> None:
    """Kernels beyond num_kernels are merged into one row, and the other rows do not change."""
    _, every = analysis.get_gpu_kernel_breakdown(num_kernels=1000)
    _, few = analysis.get_gpu_kernel_breakdown(num_kernels=2)
    assert list(few.columns) == [
        "name",
        "sum (us)",
        "max (us)",
        "min (us)",
        "stddev",
        "mean (us)",
        "kernel_type",
        "rank",
    ]
    keys = ["kernel_type", "name", "rank"]
    kept = few[few["name"] != "others"].merge(every, on=keys, suffixes=("", "_every"))
    assert (kept["max (us)"] == kept["max (us)_every"]).all()
    assert (kept["mean (us)"] == kept["mean (us)_every"]).all()
    totals = [frame.groupby(["kernel_type", "rank"])["sum (us)"].sum() for frame in (every, few)]
    assert np.allclose(totals[0], totals[1], rtol=1e-12)
    others = few[few["name"] == "others"]
    assert (others["max (us)"] < others["sum (us)"]).all()


def test_duration_ratio_counts_where_num_kernels_is_none(analysis: TraceAnalysis) -> None:
    """Without num_kernels, the selected kernels make up a given share of their type's time."""
    _, half = analysis.get_gpu_kernel_breakdown(num_kernels=None, duration_ratio=0.5)
    for _, group in half.groupby(["kernel_type", "rank"]):
        kept = group[group["name"] != "others"]["sum (us)"].sum()
        assert kept >= 0.5 * group["sum (us)"].sum()
    assert "others" in set(half["name"])


def test_idle_time_has_a_row_per_cause_that_occurs(analysis: TraceAnalysis, job: Job) -> None:
    """Idle time is that of rank 0 by default, rounded to HTA's two decimals."""
    frame, stats = analysis.get_idle_time_breakdown()
    assert stats is None
    assert list(frame.columns) == [
        "rank",
        "stream",
        "idle_category",
        "idle_time",
        "idle_time_ratio",
    ]
    assert set(frame["rank"]) == {0}
    gaps = {
        (gap.stream, gap.cause): round(gap.sum_ns / 1000, 2)
        for gap in truth_of(job).ranks[0].default.idle_gaps
        if gap.count or gap.cause == "other"
    }
    got = {
        (row.stream, row.idle_category): row.idle_time
        for row in frame.itertuples(index=False)
        if row.idle_time or (row.stream, row.idle_category) in gaps
    }
    assert got == gaps


def test_idle_interval_stats_describe_the_gaps(tmp_path: Path) -> None:
    """Of three gaps of 5, 10 and 40 µs without a launch, two are below 30 µs and one above."""
    starts = [0.0, 15.0, 35.0, 85.0]
    write_trace(tmp_path, "a.json", [kernel(ts, 10) for ts in starts])
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        frame, stats = analysis.get_idle_time_breakdown(show_idle_interval_stats=True)
        below_50, _ = analysis.get_idle_time_breakdown(consecutive_kernel_delay=50)
    assert frame.to_dict(orient="records") == [
        {"rank": 0, "stream": 7, "idle_category": name, "idle_time": idle, "idle_time_ratio": ratio}
        for name, idle, ratio in (("kernel_wait", 15.0, 0.27), ("other", 40.0, 0.73))
    ]
    assert stats is not None
    assert list(stats.columns) == [
        *("rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max")
    ]
    assert list(stats.loc["kernel_wait"])[2:] == [2, 7.5, 3.54, 5, 6.25, 7.5, 8.75, 10]
    assert dict(zip(below_50["idle_category"], below_50["idle_time"], strict=True)) == {
        "kernel_wait": 55.0,
        "other": 0.0,
    }


def test_overlap_has_a_row_for_each_rank(analysis: TraceAnalysis, job: Job) -> None:
    """The overlap is a percentage of the communication time."""
    frame = analysis.get_comm_comp_overlap()
    assert frame.to_dict(orient="records") == [
        {
            "rank": rank.rank,
            "comp_comm_overlap_pctg": round(
                100
                * rank.default.time.overlapped_communication_ns
                / rank.default.time.communication_ns,
                2,
            ),
        }
        for rank in truth_of(job).ranks
    ]


def test_launch_stats_have_a_frame_per_rank(analysis: TraceAnalysis, job: Job) -> None:
    """Every launch is counted, in µs; without memory events, copies are excluded."""
    frames = analysis.get_cuda_kernel_launch_stats(ranks=[0, 1])
    for truth in truth_of(job).ranks:
        frame = frames[truth.rank]
        assert list(frame.columns) == [
            "correlation",
            "cpu_duration",
            "gpu_duration",
            "launch_delay",
        ]
        launches = truth.default.launches
        assert len(frame) == sum(launch.count for launch in launches)
        delay = sum(launch.delay_ns for launch in launches)
        assert round(frame["launch_delay"].sum() * 1000) == delay
    fewer = analysis.get_cuda_kernel_launch_stats(include_memory_events=False)
    assert list(fewer) == [0]
    assert len(fewer[0]) < len(frames[0])


def test_a_rank_without_gpu_has_nan(tmp_path: Path) -> None:
    """A rank without GPU activity has a row with NaN, or empty frames."""
    event = kernel(0, 1) | {"cat": "cpu_op", "args": {}}
    write_trace(tmp_path, "a.json", [event])
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        temporal = analysis.get_temporal_breakdown(visualize=True)
        types, kernels = analysis.get_gpu_kernel_breakdown(visualize=True)
        idle, stats = analysis.get_idle_time_breakdown(
            visualize=True, show_idle_interval_stats=True
        )
        overlap = analysis.get_comm_comp_overlap(visualize=True)
        launches = analysis.get_cuda_kernel_launch_stats(visualize=True)
    assert list(temporal["rank"]) == [0]
    assert temporal["kernel_time(us)"].isna().all()
    assert overlap["comp_comm_overlap_pctg"].isna().all()
    assert stats is not None
    assert [len(frame) for frame in (types, kernels, idle, stats, launches[0])] == [0] * 5


def test_an_unknown_rank_is_refused(analysis: TraceAnalysis) -> None:
    """The error for an unknown rank lists the existing ranks."""
    with pytest.raises(RankError, match=r"No rank 9 in .*\[0, 1\]"):
        analysis.get_idle_time_breakdown(ranks=[9])


def test_the_first_rank_stands_for_a_missing_rank_zero(tmp_path: Path) -> None:
    """ranks=None means rank 0 if it exists, otherwise the first."""
    write_trace(tmp_path, "a.json", [kernel(0, 10), kernel(20, 10)], rank=3)
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        frame, _ = analysis.get_idle_time_breakdown()
    assert set(frame["rank"]) == {3}


def test_a_job_without_gpus_says_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For a job without GPUs, a log message explains each empty frame or None."""
    event = kernel(0, 1) | {"cat": "cpu_op", "args": {}}
    folder = write_trace(tmp_path / "cpu", "0.json", [event]).parent
    calls = {
        "get_temporal_breakdown": "temporal_breakdown",
        "get_gpu_kernel_breakdown": "gpu_kernel_types",
        "get_idle_time_breakdown": "idle_time_breakdown",
        "get_comm_comp_overlap": "comm_comp_overlap",
        "get_cuda_kernel_launch_stats": "cuda_kernel_launch_stats",
        "get_queue_length_time_series": "queue_length_series",
        "get_queue_length_summary": "queue_length_summary",
        "get_memory_bw_time_series": "memory_bandwidth_series",
        "get_memory_bw_summary": "memory_bandwidth_summary",
        "get_aten_op_kernels_and_delay": "aten_op_kernels_and_delay",
    }
    with TraceAnalysis(trace_dir=folder) as analysis:
        for method, name in calls.items():
            caplog.clear()
            getattr(analysis, method)()
            (record,) = caplog.records
            assert record.message.startswith(
                f"{name} has no rows for rank 0; the analysis needs: GPU act"
            )
    caplog.clear()
    folder = write_trace(tmp_path / "gpu", "0.json", [kernel(0, 1)]).parent
    with TraceAnalysis(trace_dir=folder) as analysis:
        analysis.get_gpu_kernel_breakdown()
        analysis.get_temporal_breakdown()
    assert "has no rows" not in caplog.text


def test_a_copy_without_bandwidth_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If copies have no recorded bandwidth, a log message explains the missing result."""
    copy = kernel(0, 1) | {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}
    folder = write_trace(tmp_path / "job", "0.json", [copy]).parent
    with TraceAnalysis(trace_dir=folder) as analysis:
        assert analysis.get_memory_bw_summary() is None
    assert "No copy or memset has a recorded bandwidth; ranks: 0." in caplog.text
