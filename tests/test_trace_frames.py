"""Tests of HTA's Trace class and its data frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.hta.utils.utils import shorten_name

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACES = Path(__file__).parent / "traces"
COLUMNS = [
    "index",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "end",
    "stream",
    "correlation",
    "bytes",
    "memory_bw_gbps",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
    "input_dims",
    "input_type",
    "input_strides",
    "external_id",
    "python_id",
    "python_parent_id",
    "process_rank",
    "collective_name",
    "in_msg_nelems",
    "out_msg_nelems",
    "msg_dtype",
    "group_size",
    "in_split_size",
    "out_split_size",
    "index_correlation",
    "iteration",
]


def files(folder: Path, *names: str) -> dict[int, str]:
    """Copy tiny traces, one per rank, and return their paths."""
    found = {}
    for rank, name in enumerate(names):
        found[rank] = str(folder / f"{rank}-{name}")
        Path(found[rank]).write_bytes((TRACES / name).read_bytes())
    return found


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Trace]:
    """Open two ranks, including their last steps."""
    with Trace(files(tmp_path, "filters.json", "two_steps_drop_last.json")) as opened:
        yield opened


def test_columns_and_values(trace: Trace) -> None:
    """The data frame has HTA's columns and defaults, with times in microseconds."""
    frame = trace.get_trace(0)
    assert set(frame.columns) == set(COLUMNS)
    assert list(frame.index) == list(frame["index"]) == list(range(18))
    symbols = trace.symbol_table.get_sym_table()
    op = frame.loc[2].to_dict()
    assert (symbols[op["name"]], symbols[op["cat"]]) == ("aten::linear", "cpu_op")
    assert (op["ts"], op["dur"], op["end"]) == (14.0, 6.0, 20.0)
    assert (op["input_dims"], op["input_type"]) == ([[2, 3]], "-1")
    assert (op["external_id"], op["stream"], op["correlation"]) == (5, -1, -1)
    assert (op["iteration"], op["index_correlation"]) == (550, -1)
    assert frame.loc[1, "input_dims"] == [[4]]
    copy = frame.loc[14]
    assert (copy["bytes"], copy["memory_bw_gbps"], copy["stream"]) == (1024, 0.5, 7)
    assert list(frame.loc[[3, 13, 12, 15, 16], "index_correlation"]) == [13, 3, 15, 12, 0]
    assert frame.loc[9, "collective_name"] == ""
    assert trace.get_trace(0) is frame


def test_files_that_are_taken_out_are_not_parsed(trace: Trace) -> None:
    """Trace files that a caller removes from ``trace_files`` are not parsed."""
    del trace.trace_files[0]
    trace.parse_traces()
    assert trace.get_ranks() == [1]
    assert trace.is_parsed
    trace.trace_files = {}
    trace.parse_traces()
    assert not trace.is_parsed


def test_scope(trace: Trace) -> None:
    """All steps are in scope until align_and_filter_trace or load_traces changes the scope."""
    assert trace.get_ranks() == [0, 1]
    assert trace.get_iterations() == [550, 551]
    assert trace.get_iterations(1) == [1, 2]
    assert trace.get_iterations(7) == []
    trace.align_and_filter_trace(include_last_profiler_step=False)
    assert trace.get_iterations() == [550]
    assert {rank: len(frame) for rank, frame in trace.get_all_traces().items()} == {0: 13, 1: 7}
    trace.load_traces(include_last_profiler_step=True)
    assert trace.get_iterations(1) == [1, 2]
    trace.parse_traces(max_ranks=1)
    assert trace.get_ranks() == [0]
    with pytest.raises(RankError, match="No rank 1"):
        trace.get_trace(1)


def test_times_are_the_files_until_they_are_aligned(tmp_path: Path) -> None:
    """After parse_traces, each rank has its own clock.

    After alignment, time 0 is the first event of all ranks.
    """
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "dur": 2}
    paths = {}
    for rank, ts in enumerate((1682725898237042, 1682725898237050.5)):
        paths[rank] = str(tmp_path / f"{rank}.json")
        Path(paths[rank]).write_text(json.dumps({"traceEvents": [event | {"ts": ts}]}))
    with Trace(paths) as trace:
        trace.parse_traces()
        CallGraph(trace)
        assert trace.get_trace(0)["ts"].tolist() == [1682725898237042]
        assert trace.get_trace(1)["end"].tolist() == [1682725898237052.5]
        trace.align_and_filter_trace()
        assert trace.get_trace(0)["ts"].tolist() == [0]
        assert trace.get_trace(1)["end"].tolist() == [10.5]
        trace.parse_traces()
        assert trace.get_trace(1)["ts"].tolist() == [1682725898237050.5]


def test_whole_microseconds_stay_whole(tmp_path: Path) -> None:
    """Large timestamps stay exact, although their nanoseconds exceed the precision of floats.

    As a float, 1682725898237042000 ns would become ...8237041.75 µs.
    """
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "dur": 2}
    starts = [1682725898237000 + n for n in range(300)]
    path = tmp_path / "0.json"
    path.write_text(json.dumps({"traceEvents": [event | {"ts": ts} for ts in starts]}))
    with Trace([str(path)]) as trace:
        assert trace.get_trace(0)["ts"].tolist() == starts


def test_kernels_below_a_call_are_on_the_clock_of_the_frame(tmp_path: Path) -> None:
    """Call graph columns use the same clock as the data frame, before and after alignment."""
    event = {"ph": "X", "pid": 1, "tid": 1, "args": {"correlation": 1}}
    events = [
        {**event, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 100, "dur": 2},
        {**event, "cat": "kernel", "name": "k", "ts": 110, "dur": 5, "tid": 7},
    ]
    path = tmp_path / "0.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with Trace([str(path)]) as trace:
        for start in (110.0, 10.0):
            CallGraph(trace)
            assert trace.get_trace(0)["first_kernel_start"].tolist() == [start, start]
            assert trace.get_trace(0)["last_kernel_end"].tolist() == [start + 5, start + 5]
            trace.align_and_filter_trace()


def test_a_frame_given_back_is_refused(tmp_path: Path) -> None:
    """Assigning a data frame back is an error, because analyses would ignore it."""
    with TraceAnalysis(files(tmp_path, "two_steps_drop_last.json")) as analysis:
        frame = analysis.t.get_trace(0)
        with pytest.raises(TypeError, match="does not support item assignment"):
            analysis.t.traces[0] = frame.head(1)  # type: ignore[index]  # on purpose
        with pytest.raises(AttributeError, match="no setter"):
            analysis.t.traces = {0: frame}  # type: ignore[misc]  # on purpose
        assert list(analysis.t.traces) == [0]
        assert analysis.t.traces[0] is frame


def test_files_are_paths() -> None:
    """If trace_files does not contain paths, the error names the given value."""
    with pytest.raises(ParameterError, match="not 42"):
        Trace(42)  # type: ignore[arg-type]  # on purpose


def test_names(trace: Trace) -> None:
    """Name ids are in alphabetical order for all ranks, and decoding adds name columns."""
    symbols = trace.symbol_table.get_sym_table()
    assert symbols == sorted(symbols)
    trace.decode_symbol_ids()
    assert trace.get_trace(0).loc[13, "s_name"] == "gemm"
    assert trace.get_trace(1).loc[4, "s_cat"] == "kernel"
    trace.decode_symbol_ids(use_shorten_name=False)
    assert trace.get_trace(0).loc[13, "s_name"] == "void gemm<float>(int)"


def test_some_ranks(trace: Trace) -> None:
    """With max_ranks=1, only the first rank is loaded, and any other rank is an error."""
    trace.parse_traces(max_ranks=1)
    assert trace.get_ranks() == [0]
    with pytest.raises(RankError):
        trace.get_trace(1)


def test_the_trace_of_an_analysis(tmp_path: Path) -> None:
    """``TraceAnalysis.t`` has the scope of its analysis: by default, without the last step."""
    with TraceAnalysis(files(tmp_path, "two_steps_drop_last.json")) as analysis:
        assert list(analysis.t.get_trace(0)["index"]) == [0, 2, 3, 4, 5, 6, 7]
        assert analysis.t is analysis.t
        analysis.t.align_and_filter_trace(include_last_profiler_step=True)
        assert len(analysis.t.get_trace(0)) == 12
        assert analysis.get_temporal_breakdown().loc[0, "kernel_time(us)"] == 110.0


def test_no_device(tmp_path: Path) -> None:
    """A trace without events has an empty data frame with all columns."""
    with Trace(files(tmp_path, "no_events.json")) as trace:
        assert set(trace.get_trace(0).columns) == set(COLUMNS)
        assert len(trace.get_trace(0)) == 0
        assert trace.symbol_table.get_sym_table() == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("aten::mm", "aten::mm"),
        ("void at::native::kernel<float, std::array<char*, 2> >(int, f<g>)", "at::native::kernel"),
        ("void cub::Kernel<a->b>(x)::operator()", "cub::Kernel::operator"),
        ("a>b", "a>b"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    """Template arguments, call arguments and the return type are removed from names."""
    assert shorten_name(name) == short
