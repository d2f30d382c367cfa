"""Tests of timelines: device activity by stream, and HTA's timeline functions on data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql import charts
from hta_sql.charts.shown import themed
from hta_sql.charts.timeline.frames import MAX_EVENTS
from hta_sql.charts.timeline.gpu import MAX_BARS, MAX_LANES, gpu_timeline
from hta_sql.errors import ParameterError
from hta_sql.hta.analyzers.timeline import plot_timeline_gpu_kernels
from hta_sql.hta.common.timeline import (
    PlotFormat,
    Timeline,
    TimelinePlotSetting,
    align_module_with_kernels,
    plot_events_timeline,
    prepare_timeline_events,
    simplify_name,
)
from hta_sql.hta.common.timeline_settings import EventType, auto_detect_setting, event_type_of
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph
from hta_sql.hta.common.trace_filter import GPUKernelFilter
from tests.drawn_marks import picture_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hta_sql.store.query.trace_store import TraceStore

TRACES = Path(__file__).parent / "traces"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """Open two ranks with the events of call_stacks.json, and add the columns of a call graph."""
    folder = tmp_path_factory.mktemp("timeline")
    paths = {rank: str(folder / f"{rank}.json") for rank in (0, 1)}
    for path in paths.values():
        Path(path).write_bytes((TRACES / "call_stacks.json").read_bytes())
    with Trace(paths) as opened:
        CallGraph(opened)
        yield opened


def rows(chart: Any) -> list[dict[str, Any]]:
    """Return the data rows of a chart."""
    spec = chart.to_dict()
    found: list[dict[str, Any]] = next(iter(spec["datasets"].values()))
    return found


def both_ranks(trace: Trace) -> pd.DataFrame:
    """Return the events of both ranks in one data frame, as in HTA's notebooks."""
    return pd.concat([trace.get_trace(r).assign(rank=r) for r in (0, 1)], ignore_index=True)


def test_a_bar_per_operation(ingest_trace: Callable[..., TraceStore]) -> None:
    """The timeline has one lane per stream and one bar per operation, colored by class."""
    chart = charts.draw(ingest_trace("call_stacks.json").run("gpu_timeline"))
    bars = rows(chart)
    assert [(b["lane"], b["name"], b["start"], b["part"]) for b in bars] == [
        ("0 / 7", "k1", 0, "computation"),
        ("0 / 7", "k2", 11, "computation"),
        ("0 / 7", "k4", 40, "computation"),
        ("0 / 7", "orphan", 50, "computation"),
        ("0 / 8", "k3", 5, "computation"),
    ]
    empty = ingest_trace("host_only.json", "host.store").run("gpu_timeline")
    assert not rows(gpu_timeline(empty.df()))


def test_what_is_on_no_stream_has_a_lane(ingest_trace: Callable[..., TraceStore]) -> None:
    """Operations without a stream have their own lane, and stream numbers stay integers."""
    event = {"ph": "X", "cat": "mtia_ccp_events", "pid": 0, "tid": 801, "dur": 2}
    events = [
        {**event, "name": "merge", "ts": 1, "args": {"stream": 3}},
        {**event, "name": "dma_request", "ts": 5, "args": {}},
    ]
    bars = rows(charts.draw(ingest_trace(events).run("gpu_timeline")))
    assert [bar["lane"] for bar in bars] == ["0 / 3", "0 / none"]


def test_a_bar_of_short_operations_looks_idle() -> None:
    """A merged bar has the share of its time in which operations run, here about a tenth."""
    start = pd.Series(range(2 * MAX_BARS)) * 1000
    table = pd.DataFrame({"run": "job", "rank": 0, "device": 0, "stream": 7, "start_ns": start})
    table = table.assign(end_ns=start + 100, op_count=1, name="gemm", step=None)
    table["class"] = "computation"
    bars = rows(gpu_timeline(table))
    assert {bar["rank"] for bar in bars} == {0}
    assert all(0.04 <= bar["busy"] <= 0.2 for bar in bars)


def test_many_operations_and_ranks_stay_small() -> None:
    """Adjacent operations are merged, only the first lanes are shown, and a note says so."""
    ranks, ops = 4096, 40
    rank = pd.Series(range(ranks)).repeat(ops).reset_index(drop=True)
    start = pd.Series(list(range(ops)) * ranks) * 1000
    table = pd.DataFrame({"run": "job", "rank": rank, "device": 0, "stream": 7})
    table = table.assign(start_ns=start, end_ns=start + 900, op_count=1, name="gemm<" + "x" * 300)
    table["class"] = ["computation", "memory"] * (len(table) // 2)
    chart = gpu_timeline(table)
    bars = rows(chart)
    assert len(bars) <= MAX_BARS
    assert len({bar["lane"] for bar in bars}) == MAX_LANES
    assert sum(bar["operations"] for bar in bars) == MAX_LANES * ops
    assert len(themed(chart).to_json()) < 2_000_000
    assert any("first 100 of 4,096" in line for line in chart.to_dict()["title"]["subtitle"])


def test_device_activity_of_ranks(trace: Trace) -> None:
    """Ranks and streams can be selected, and short events are drawn with a minimum length."""
    frame, symbols = both_ranks(trace), trace.symbol_table
    drawn = plot_timeline_gpu_kernels("Kernels", frame, symbols, [1], None, [7], 7)
    assert [(b["task"], b["color"]) for b in rows(drawn)] == [
        ("rank 1 stream 7", name) for name in ("k1", "k2", "k4", "orphan")
    ]
    assert [round(b["x2"] - b["x"], 3) for b in rows(drawn)] == [10, 7, 7, 7]
    chart = plot_timeline_gpu_kernels("Kernels", frame, symbols, duration_threshold=0)
    lanes = {f"rank {rank} stream {stream}" for rank in (0, 1) for stream in (7, 8)}
    assert {bar["task"] for bar in rows(chart)} == lanes
    assert (min(bar["x"] for bar in rows(chart)), max(bar["x2"] for bar in rows(chart))) == (0, 55)
    with pytest.raises(ParameterError, match="iteration"):
        plot_timeline_gpu_kernels("Kernels", frame.drop(columns="iteration"), symbols)


def test_lanes(trace: Trace) -> None:
    """Lanes are device streams and host depths, prefixed by rank if there are multiple ranks."""
    setting = TimelinePlotSetting(short_events_display_duration=5)
    one = prepare_timeline_events(trace.get_trace(0), setting, trace.symbol_table)
    assert {"gpu stream 007", "gpu stream 008", "cpu level 000", "cpu level 005"} > set(
        one["task"]
    ) - {f"cpu level {depth:03d}" for depth in range(5)}
    assert (one["calibrated_end_global"] - one["calibrated_start_global"]).min() == 5
    both = both_ranks(trace)
    lanes = prepare_timeline_events(both[both["stream"] >= 0], setting, trace.symbol_table)["task"]
    assert set(lanes) == {f"rank {r:03d} gpu stream {s:03d}" for r in (0, 1) for s in (7, 8)}
    assert prepare_timeline_events(trace.get_trace(0).iloc[:0], setting, trace.symbol_table).empty


def test_kinds_of_frames(trace: Trace) -> None:
    """Data frames with host events, device events or both are distinguished by stream."""
    frame = trace.get_trace(0)
    assert event_type_of(frame) is EventType.AllEvents
    assert event_type_of(frame[frame["stream"] == -1]) is EventType.CPUEvents
    assert event_type_of(frame[frame["stream"] != -1]) is EventType.GPUEvents


def test_timeline(trace: Trace, tmp_path: Path) -> None:
    """A timeline applies its filter, and its saved page opens without a network."""
    timeline = Timeline(trace.get_trace(0), trace.symbol_table, GPUKernelFilter())
    path = tmp_path / "timeline.html"
    chart = timeline.plot("Step 1", save_path=str(path))
    assert len(rows(chart)) == 5
    assert "https://cdn" not in path.read_text(encoding="utf-8")
    with pytest.raises(ParameterError, match="Missing columns in the frame: dur, name"):
        Timeline(trace.get_trace(0)[["ts"]], trace.symbol_table)
    with pytest.raises(ParameterError, match="Call prepare_timeline_events"):
        plot_events_timeline("x", trace.get_trace(0))


def test_no_events_make_no_chart(
    trace: Trace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without events, there is a warning, but neither a chart nor a file."""
    path = tmp_path / "none.html"
    for frame in (pd.DataFrame(), trace.get_trace(0).iloc[:0]):
        assert prepare_timeline_events(frame).empty
        timeline = Timeline(frame, trace.symbol_table, GPUKernelFilter())
        assert timeline.plot("Step 9", save_path=str(path)) is None
    assert "Step 9: there are no events" in caplog.text
    assert not path.exists()
    assert plot_timeline_gpu_kernels("x", both_ranks(trace), trace.symbol_table, [7]) is None


def test_modules_over_kernels(trace: Trace) -> None:
    """A call to a module is drawn at the time of the kernels that it launched."""
    aligned = align_module_with_kernels(trace.get_trace(0), ["aten::addmm"], trace.symbol_table)
    call = aligned[aligned["stream"] == -2].to_dict("records")
    assert [(c["ts"], c["dur"]) for c in call] == [(20.0, 35.0)]
    assert len(aligned) == 6
    whole = align_module_with_kernels(
        trace.get_trace(0), ["aten::"], trace.symbol_table, include_original_cpu_events=True
    )
    assert len(whole) == 19 + 3
    with pytest.raises(ParameterError, match="CallGraph"):
        align_module_with_kernels(trace.get_trace(0).drop(columns="num_kernels"), ["a"])


def test_the_longest_events_are_drawn() -> None:
    """If there are too many events, only the longest are drawn, and the title says so."""
    count = MAX_EVENTS + 10
    events = pd.DataFrame({"ts": range(count), "dur": range(count), "name": "op", "stream": 7})
    chart = plot_events_timeline("Many", prepare_timeline_events(events))
    assert len(rows(chart)) == MAX_EVENTS
    assert chart is not None
    assert not isinstance(chart, str)
    assert "5,000 of 5,010" in str(chart.to_dict()["title"])


def test_settings(trace: Trace, tmp_path: Path) -> None:
    """The data frame or the settings determine the lanes; the plot format determines the output."""
    frame, symbols = trace.get_trace(0), trace.symbol_table
    setting = TimelinePlotSetting()
    auto_detect_setting(frame, setting)
    assert setting.event_type is EventType.AllEvents
    assert setting.multi_streams
    assert not setting.multi_ranks
    by_rank = TimelinePlotSetting(auto_detect=False, multi_ranks=True, multi_streams=False)
    device = frame[frame["stream"] >= 0].assign(rank=0)
    assert set(prepare_timeline_events(device, by_rank, symbols)["task"]) == {"rank 000"}
    host = frame[frame["tid"] == 200]
    by_thread = TimelinePlotSetting(compress_threads=False)
    lanes = prepare_timeline_events(host, by_thread, symbols)["task"]
    assert set(lanes) == {f"tid 200 cpu level {depth:03d}" for depth in (0, 2, 3, 4)}
    assert by_thread == TimelinePlotSetting(compress_threads=False)
    page = Timeline(device, symbols, setting=TimelinePlotSetting(plot_format=PlotFormat.HTML)).plot(
        "Kernels"
    )
    assert isinstance(page, str)
    assert "<title>Kernels" in page
    to_file = Timeline(device, symbols, setting=TimelinePlotSetting(plot_format=PlotFormat.File))
    with pytest.raises(ParameterError, match="output_image_path"):
        to_file.plot("Kernels")
    to_file.plot("Kernels", str(tmp_path / "kernels.svg"))
    assert picture_marks((tmp_path / "kernels.svg").read_bytes())["rect"] == len(device)
    assert Timeline.is_timeline_events(to_file.timeline_events, setting)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("autograd::engine::evaluate_function: TBackward0", "autograd::TBackward0"),
        ("void permute_pooled_embs_kernel<float>(int, char)", "permute_pooled_embs_kernel<float>"),
        ("## qat ##", "## qat ##"),
        ("x" * 46, "x" * 42 + "..."),
    ],
)
def test_short_names(name: str, short: str) -> None:
    """Short names equal those of HTA."""
    assert simplify_name(name) == short
