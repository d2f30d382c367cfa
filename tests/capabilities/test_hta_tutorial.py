"""Test every call in HTA's tutorial and README, by capability number: S0-1 ... S2-18.

The job is the one in tests/cookbook, with two ranks and three steps. The last step is excluded by
default. Rank 1 is slow in the backward pass and waits less for the collective.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import hta_sql
from hta_sql import TraceAnalysis, charts
from hta_sql.errors import RankError
from hta_sql.hta.methods.counters import TimeSeriesTypes
from hta_sql.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from tests.cookbook.job import Plan, write_job
from tests.cookbook.truth import ALL_REDUCE, COPY
from tests.drawn_marks import picture_marks, visible_marks
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with one trace per rank."""
    return write_job(tmp_path_factory.mktemp("job") / "traces", Plan())


@pytest.fixture(scope="module")
def analyzer(traces: Path) -> Iterator[TraceAnalysis]:
    """Return the object that the tutorial calls ``analyzer``."""
    with TraceAnalysis(trace_dir=str(traces)) as opened:
        yield opened


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a frame as tuples."""
    return [tuple(row) for row in frame.itertuples(index=False, name=None)]


def test_s0_02_a_folder_is_read_once(traces: Path, analyzer: TraceAnalysis) -> None:
    """Opening the folder a second time reads only the Parquet files, not the traces."""
    with TraceAnalysis(trace_dir=str(traces)) as again:
        assert again.store.ingested is not None
        assert again.store.ingested.results == []
    assert analyzer.store.ranks() == [0, 1]


def test_s0_03_temporal_breakdown(analyzer: TraceAnalysis) -> None:
    """Idle, compute and non-compute time add up to the span of steps 1 and 2 (60 to 1610 µs)."""
    frame = analyzer.get_temporal_breakdown(visualize=False)
    assert rows(frame) == [
        (0, 580.0, 680.0, 290.0, 1550.0, 37.42, 43.87, 18.71),
        (1, 510.0, 920.0, 120.0, 1550.0, 32.9, 59.35, 7.74),
    ]


@pytest.mark.parametrize(
    ("capability", "name", "options", "kind", "count"),
    [
        # Four parts for two ranks, as shares and as times.
        ("S0-4", "temporal_breakdown", {}, "rect", 16),
        # host_wait on three streams of both ranks, and other on stream 7 of both ranks.
        ("S0-10", "idle_time_breakdown", {"percent": False}, "rect", 8),
        # Each class alone, and computation overlapping communication.
        ("S0-11", "gpu_kernel_types", {}, "arc", 4),
        # Four kernels, one collective and one copy on two ranks.
        ("S0-14", "gpu_kernels_by_name", {"top": 5}, "rect", 12),
        # Overlapped and exposed communication of two ranks, as shares and as times.
        ("S0-21", "comm_comp_overlap", {}, "rect", 8),
        # 7 bins of kernel durations, 5 of call durations, 8 of delays; one bin has both colors.
        ("S0-31", "cuda_kernel_launch_stats", {}, "rect", 21),
    ],
)
def test_s0_04_every_table_has_its_chart(  # noqa: PLR0917 - the columns of the table
    analyzer: TraceAnalysis,
    capability: str,
    name: str,
    options: dict[str, Any],
    kind: str,
    count: int,
) -> None:
    """The chart of each analysis has the expected number of marks."""
    chart = charts.draw(analyzer.store.run(name), **options)
    assert visible_marks(chart)[kind] == count, capability


def test_s0_05_idle_time_has_a_cause(analyzer: TraceAnalysis) -> None:
    """Stream 7 of rank 0 is idle for 780 µs because of late launches, and 60 µs otherwise."""
    frame, stats = analyzer.get_idle_time_breakdown(visualize=False)
    on_stream = frame[frame["stream"] == 7]
    assert rows(on_stream[["rank", "idle_category", "idle_time", "idle_time_ratio"]]) == [
        (0, "host_wait", 780.0, 0.93),
        (0, "other", 60.0, 0.07),
    ]
    assert stats is None


def test_s0_06_consecutive_kernel_delay(analyzer: TraceAnalysis) -> None:
    """``consecutive_kernel_delay`` is the upper limit for gaps that count as kernel_wait."""
    frame, _ = analyzer.get_idle_time_breakdown(visualize=False, consecutive_kernel_delay=61)
    causes = frame[frame["stream"] == 7].set_index("idle_category")["idle_time"].to_dict()
    assert causes == {"host_wait": 780.0, "kernel_wait": 60.0, "other": 0.0}


def test_s0_07_rank_0_by_default_and_any_list(analyzer: TraceAnalysis) -> None:
    """Rank 0 is the default, a list of ranks is accepted, and an unknown rank is an error."""
    assert set(analyzer.get_idle_time_breakdown(visualize=False)[0]["rank"]) == {0}
    both = analyzer.get_idle_time_breakdown(ranks=[0, 1], visualize=False)[0]
    assert set(both["rank"]) == {0, 1}
    with pytest.raises(RankError, match="No rank 5"):
        analyzer.get_idle_time_breakdown(ranks=[5])


def test_s0_09_statistics_of_gaps(analyzer: TraceAnalysis) -> None:
    """The optional second table counts the four host_wait gaps: 60, 170, 170 and 380 µs."""
    _, stats = analyzer.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True)
    assert stats is not None
    row: Any = stats[stats["stream"] == 7].loc["host_wait"]
    assert row[["count", "mean", "min", "50%", "max"]].tolist() == [4, 195, 60, 170, 380]


def test_s0_11_kernel_types(analyzer: TraceAnalysis) -> None:
    """Kernel types are summed over all ranks, and overlapping kernels are a separate type."""
    types, _ = analyzer.get_gpu_kernel_breakdown(visualize=False)
    assert rows(types) == [
        ("COMPUTATION", 1560.0, 77.6),
        ("COMMUNICATION", 330.0, 16.4),
        ("MEMORY", 80.0, 4.0),
        ("COMPUTATION overlapping COMMUNICATION", 40.0, 2.0),
    ]


def test_s0_13_kernels_of_each_rank(analyzer: TraceAnalysis) -> None:
    """The second table has one row per kernel and rank. Covers S0-12, too."""
    _, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False)
    row = kernels[(kernels["name"] == "gemm_fwd") & (kernels["rank"] == 0)].iloc[0]
    assert row[["sum (us)", "max (us)", "min (us)", "mean (us)"]].tolist() == [260, 180, 80, 130]
    assert row["stddev"] == pytest.approx(70.71, abs=0.01)
    assert row["kernel_type"] == "COMPUTATION"


def test_s0_15_average_minimum_and_maximum_across_ranks(analyzer: TraceAnalysis) -> None:
    """The slow rank stands out by the mean duration of its backward kernel."""
    table = analyzer.store.run("gpu_kernels_by_name").df()
    backward = table[table["name"] == "gemm_bwd"]
    assert rows(backward[["rank", "min_ns", "mean_ns", "max_ns"]]) == [
        (0, 120_000, 120_000.0, 120_000),
        (1, 240_000, 240_000.0, 240_000),
    ]


def test_s0_16_top_k_kernels(analyzer: TraceAnalysis) -> None:
    """With ``num_kernels=1``, the remaining kernels of a type are summed in a row ``others``."""
    _, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False, num_kernels=1)
    names = kernels[(kernels["rank"] == 0) & (kernels["kernel_type"] == "COMPUTATION")]["name"]
    assert names.tolist() == ["gemm_fwd", "others"]


def test_s0_17_kernels_by_share(analyzer: TraceAnalysis) -> None:
    """``duration_ratio`` selects kernels by time share, unless ``num_kernels`` is set."""
    ratio: dict[str, Any] = {"visualize": False, "duration_ratio": 0.5}
    _, by_share = analyzer.get_gpu_kernel_breakdown(num_kernels=None, **ratio)
    _, by_count = analyzer.get_gpu_kernel_breakdown(num_kernels=1, **ratio)
    assert len(by_share) > len(by_count)


def test_s0_18_image_renderer_is_accepted(analyzer: TraceAnalysis) -> None:
    """HTA's parameter ``image_renderer`` is accepted and has no effect."""
    types, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False, image_renderer="jupyterlab")
    expected_types, expected_kernels = analyzer.get_gpu_kernel_breakdown(visualize=False)
    pd.testing.assert_frame_equal(types, expected_types)
    pd.testing.assert_frame_equal(kernels, expected_kernels)


def test_s0_20_overlap(analyzer: TraceAnalysis) -> None:
    """Of 270 µs of communication on rank 0 and 100 µs on rank 1, 20 µs each are overlapped."""
    assert rows(analyzer.get_comm_comp_overlap(visualize=False)) == [(0, 7.41), (1, 20.0)]


def test_s0_22_memory_bandwidth(analyzer: TraceAnalysis) -> None:
    """Two copies run at 50 GB/s for 20 µs each, and bandwidth is zero between them.

    The series has a point at each change, so this covers S0-26, too.
    """
    series = analyzer.get_memory_bw_time_series()
    assert list(series) == [0]
    frame = series[0]
    assert set(frame["name"]) == {"Memcpy HtoD"}
    assert rows(frame[["ts", "memory_bw_gbps"]]) == [
        *((690.0, 50.0), (710.0, 0.0)),
        *((1590.0, 50.0), (1610.0, 0.0)),
    ]


def test_s0_23_queue_length(analyzer: TraceAnalysis) -> None:
    """On stream 7 of rank 0, each launch adds one to the queue and each kernel start removes one.

    HTA's older method name returns the same series.
    """
    series = analyzer.get_queue_length_series()[0]
    assert analyzer.get_queue_length_time_series()[0].equals(series)
    on_stream = series[(series["stream"] == 7) & (series["ts"] < 1000)]
    assert rows(on_stream[["ts", "queue_length"]]) == [
        *((50.0, 1), (60.0, 0), (130.0, 1)),
        # At 240 µs flash_fwd starts and gemm_bwd is launched, so the length does not change.
        *((360.0, 0), (510.0, 1), (650.0, 0)),
    ]


def test_s0_23_time_blocked_on_a_full_queue(analyzer: TraceAnalysis) -> None:
    """No queue reaches the default limit of 1,024; with a limit of one, every stream reaches it."""
    series = analyzer.get_queue_length_time_series()
    assert rows(analyzer.get_time_spent_blocked_on_full_queue(series)) == []
    full = analyzer.get_time_spent_blocked_on_full_queue(series, max_queue_length=1)
    assert set(full["stream"]) == {7, 20, 24}


def test_s0_24_trace_with_counters(traces: Path, analyzer: TraceAnalysis, tmp_path: Path) -> None:
    """The new trace has all original events unchanged, and counters of both requested types."""
    both = TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH
    written = analyzer.generate_trace_with_counters(time_series=both, output_dir=tmp_path)
    assert Path(written[0]).name == "rank0_with_counters.json.gz"
    before = json.loads((traces / "rank0.json").read_text())["traceEvents"]
    after = json.loads(gzip.decompress(Path(written[0]).read_bytes()))["traceEvents"]
    counters = [event for event in after if event["ph"] == "C"]
    assert [event for event in after if event["ph"] != "C"] == before
    assert set(Counter(event["name"] for event in counters)) == {"Queue Length", "Memcpy HtoD"}


def test_s0_25_summaries(analyzer: TraceAnalysis) -> None:
    """The summaries have statistics for each rank and each copy kind or stream."""
    bandwidth = analyzer.get_memory_bw_summary()
    queue = analyzer.get_queue_length_summary()
    assert bandwidth is not None
    assert queue is not None
    assert bandwidth.loc[(0, "Memcpy HtoD"), ("memory_bw_gbps", "max")] == 50.0
    assert queue.loc[(0, 7), ("queue_length", "max")] == 1


def test_s0_27_launch_statistics(analyzer: TraceAnalysis) -> None:
    """The first launch call ends at 58 µs, and its kernel starts 2 µs later and takes 180 µs."""
    frame = analyzer.get_cuda_kernel_launch_stats(visualize=False)[0]
    assert len(frame) == 12
    first = frame[frame["correlation"] == 1]
    assert rows(first) == [(1, 8.0, 180.0, 2.0)]


def test_s0_28_short_kernels_and_outliers(analyzer: TraceAnalysis) -> None:
    """Short kernels, slow calls and long launch delays are flagged. Covers S0-28 to S0-30."""
    table = analyzer.store.run(
        "cuda_kernel_launch_stats", runtime_cutoff_ns=9_000, launch_delay_cutoff_ns=130_000
    ).df()
    assert not table["is_short_kernel"].any()
    assert set(table[table["is_runtime_outlier"]]["name"]) == {ALL_REDUCE, COPY}
    slow = table[table["is_launch_delay_outlier"]]
    assert sorted(rows(slow[["rank", "name"]])) == [
        *((0, "elementwise"), (1, "elementwise"), (1, ALL_REDUCE)),
    ]


def test_s2_06_frequent_kernel_patterns(analyzer: TraceAnalysis, tmp_path: Path) -> None:
    """Both HTA methods find the kernel sequences of an operator and mark them in a trace."""
    call: dict[str, Any] = {"operator_name": "aten::linear", "output_dir": str(tmp_path)}
    call["min_pattern_len"] = 1
    patterns = analyzer.get_frequent_cuda_kernel_patterns(**call)
    assert patterns.equals(analyzer.get_frequent_cuda_kernel_sequences(**call))
    assert patterns.iloc[0]["pattern"].split("|") == ["aten::linear", "gemm_fwd"]
    assert patterns.iloc[0]["count"] == 2
    assert list(tmp_path.iterdir())


def test_s2_09_trace_comparison(traces: Path, tmp_path: Path) -> None:
    """A forward GEMM that takes half the time is reported by name with its difference.

    The differences are also drawn.
    """
    faster = write_job(tmp_path / "faster", Plan(gemm_forward=40))
    control = LabeledTrace("control", trace_dir=str(traces))
    test = LabeledTrace("test", trace_dir=str(faster))
    frame = TraceDiff.compare_traces(control, test, device_type=DeviceType.GPU)
    assert frame.loc["gemm_fwd", "diff_duration"] == -40.0
    assert TraceDiff.ops_diff(control, test)["added"] == []
    TraceDiff.visualize_duration_diff(
        frame, show_image=False, export_image_path=str(tmp_path / "d.svg")
    )
    # Two bars for each of five kernels and a copy, and one for the only difference.
    assert picture_marks((tmp_path / "d.svg").read_bytes())["rect"] == 2 * 6 + 1


def test_s2_13_traces_of_two_jobs_in_one_folder_are_reported(tmp_path: Path) -> None:
    """A trace with a different world size is refused, or causes a finding if it is one job."""
    folder = write_job(tmp_path / "traces", Plan())
    other = json.loads((folder / "rank1.json").read_text())
    other["distributedInfo"]["world_size"] = 16
    (folder / "rank1.json").write_text(json.dumps(other))
    with pytest.raises(hta_sql.RankError, match=r"rank1.json \(world size 16"):
        hta_sql.ingest(folder, tmp_path / "s.store")
    with hta_sql.ingest(folder, tmp_path / "s.store", one_job=True) as store:
        findings = store.run("findings").df()
    assert findings["message"].str.contains("16").any()


def test_s2_15_every_call_of_the_readme(traces: Path, tmp_path: Path) -> None:
    """The calls in HTA's README work if one import is changed."""
    from hta_sql.hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - the line that changes

    analyzer = TraceAnalysis(trace_dir=str(traces))
    assert len(analyzer.get_temporal_breakdown()) == 2
    assert len(analyzer.get_gpu_kernel_breakdown()) == 2
    assert len(analyzer.get_idle_time_breakdown()) == 2
    assert len(analyzer.get_comm_comp_overlap()) == 2
    call: dict[str, Any] = {"operator_name": "aten::linear", "output_dir": str(tmp_path)}
    assert analyzer.get_frequent_cuda_kernel_patterns(**call) is not None
    assert len(analyzer.get_cuda_kernel_launch_stats()) == 1
    assert len(analyzer.get_memory_bw_time_series()) == 1
    assert analyzer.get_memory_bw_summary() is not None
    assert len(analyzer.get_queue_length_time_series()) == 1
    assert analyzer.get_queue_length_summary() is not None
    analyzer.close()


def test_s2_16_logging_is_pythons_own(
    traces: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Log records use Python's logger ``hta_sql``."""
    with caplog.at_level(logging.INFO, logger="hta_sql"):
        ingest_only(traces, tmp_path / "a.store")
    assert [r for r in caplog.records if r.name.startswith("hta_sql")]


def test_s2_17_entry_points() -> None:
    """HTA's TraceDiff and LabeledTrace can be imported."""
    assert hasattr(TraceDiff, "compare_traces")
    assert hasattr(LabeledTrace, "iterations")
