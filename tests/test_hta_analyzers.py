"""HTA's analyzers of a Trace, its ways to read one trace, call graphs of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.analyzers.breakdown_analysis import BreakdownAnalysis
from hta_sql.hta.analyzers.communication_analysis import CommunicationAnalysis
from hta_sql.hta.analyzers.critical_path_analysis import CPEdgeType, CriticalPathAnalysis
from hta_sql.hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
from hta_sql.hta.analyzers.cupti_counter_analysis import CuptiCounterAnalysis
from hta_sql.hta.analyzers.straggler import extract_iteration_info
from hta_sql.hta.analyzers.straggler_analysis import StragglerAnalysis
from hta_sql.hta.analyzers.trace_counters import TraceCounters
from hta_sql.hta.common import call_stack
from hta_sql.hta.common.trace import Trace, get_cpu_gpu_correlation, parse_trace_file
from hta_sql.hta.common.trace_call_graph import CallGraph
from hta_sql.hta.common.trace_parser import (
    get_default_trace_parsing_backend,
    parse_trace_dataframe,
    parse_trace_dict,
    set_default_trace_parsing_backend,
)
from hta_sql.hta.configs.parser_config import ParserBackend, ParserConfig
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.traces.whole_files import read_trace

TRACES = Path(__file__).parent / "traces"


def copies(folder: Path, *names: str) -> dict[int, str]:
    """Copies of tiny traces, one rank each."""
    paths = {rank: str(folder / f"rank{rank}.json") for rank in range(len(names))}
    for path, name in zip(paths.values(), names, strict=True):
        Path(path).write_bytes((TRACES / name).read_bytes())
    return paths


@pytest.fixture
def job(tmp_path: Path) -> Iterator[TraceAnalysis]:
    """Three ranks of collectives, the last step left out."""
    paths = copies(tmp_path, *(f"straggler_{rank}.json" for rank in range(3)))
    with TraceAnalysis(paths) as opened:
        yield opened


def assert_same(ours: Any, theirs: Any) -> None:
    """Frames, or dicts and tuples of them."""
    assert type(ours) is type(theirs)
    if isinstance(ours, pd.DataFrame):
        assert not ours.empty
        assert_frame_equal(ours, theirs)
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            assert_same(value, theirs[key])
    elif isinstance(ours, tuple):
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    else:
        assert ours == theirs


def test_analyzers_say_what_trace_analysis_says(job: TraceAnalysis) -> None:
    """Of TraceAnalysis.t, in its scope."""
    t = job.t
    assert_same(BreakdownAnalysis.get_temporal_breakdown(t), job.get_temporal_breakdown())
    assert_same(BreakdownAnalysis.get_gpu_kernel_breakdown(t), job.get_gpu_kernel_breakdown())
    assert_same(
        BreakdownAnalysis.get_idle_time_breakdown(t, 30, 1, None, None, True, True),
        job.get_idle_time_breakdown([1], show_idle_interval_stats=True),
    )
    assert_same(CommunicationAnalysis.get_comm_comp_overlap(t), job.get_comm_comp_overlap())
    assert_same(
        CudaKernelAnalysis.cuda_kernel_launch_stats(t, [2]), job.get_cuda_kernel_launch_stats([2])
    )
    series = TraceCounters.get_queue_length_time_series(t, [0, 1])
    assert_same(series, job.get_queue_length_time_series([0, 1]))
    assert_same(TraceCounters.get_queue_length_summary(t), job.get_queue_length_summary())
    assert_same(
        TraceCounters.get_queue_length_summary_from_time_series(series),
        job.get_queue_length_summary_from_time_series(series),
    )
    assert_same(
        TraceCounters.get_time_spent_blocked_on_full_queue(t, series, 1),
        job.get_time_spent_blocked_on_full_queue(series, 1),
    )
    assert_same(StragglerAnalysis.get_profiler_steps(t), [0, 1])
    assert_same(StragglerAnalysis.get_potential_stragglers(t), job.get_potential_stragglers())
    assert BreakdownAnalysis.get_gpu_user_annotation_breakdown(t) is None
    assert BreakdownAnalysis.get_gpu_kernels_with_user_annotations(t, 0) is None
    assert CuptiCounterAnalysis.get_counter_data_with_operators(t) == []
    assert TraceCounters.get_memory_bw_summary(t) is None
    assert TraceCounters.get_memory_bw_time_series(t) == {}


def test_the_trace_says_what_is_looked_at(job: TraceAnalysis) -> None:
    """Its ranks and its scope, which may change; the job that it is of stays as it is."""
    trace = Trace(job=job)
    assert extract_iteration_info(trace)[["rank", "iter", "ts", "dur", "end"]].head(2).to_dict(
        "list"
    ) == {"rank": [0, 0], "iter": [0, 1], "ts": [0, 100], "dur": [100, 100], "end": [100, 200]}
    trace.align_and_filter_trace(include_last_profiler_step=True)
    trace.parse_multiple_ranks([2, 1])
    assert trace.get_ranks() == [1, 2]
    trace.parse_single_rank(2)
    trace.parse_single_rank(7)
    assert StragglerAnalysis.get_profiler_steps(trace) == [0, 1, 2]
    assert BreakdownAnalysis.get_temporal_breakdown(trace)["rank"].tolist() == [1, 2]
    with pytest.raises(RankError):
        trace.parse_multiple_ranks([0])
    assert job.get_temporal_breakdown()["rank"].tolist() == [0, 1, 2]


def test_paths_and_sequences(tmp_path: Path) -> None:
    """What also writes traces: only some edges are drawn where some are asked for."""
    with Trace(copies(tmp_path, "call_stacks.json")) as trace:
        found = CriticalPathAnalysis.critical_path_analysis(trace, 0, "ProfilerStep", 0)
        assert found is not None
        graph, _ = found
        drawn = {}
        for name, types in (("default", None), ("operators", {CPEdgeType.OPERATOR_KERNEL})):
            path = CriticalPathAnalysis.overlay_critical_path_analysis(
                trace, 0, graph, str(tmp_path / name), True, False, types
            )
            events = [e for e in read_trace(path)["traceEvents"] if e.get("ph") == "s"]
            drawn[name] = {e["args"]["type"] for e in events}
        assert drawn["operators"] == {"critical_path_operator"}
        # This path goes over operators only, which are not drawn by default.
        assert drawn["default"] == set()
        frame = CudaKernelAnalysis.get_frequent_cuda_kernel_sequences(
            trace, "aten::linear", None, min_pattern_len=1
        )
        assert frame["count"].tolist() == [1]
        delays = CudaKernelAnalysis.get_aten_op_kernels_and_delay(trace)
        assert set(delays[0]["aten_op_name"]) == {"aten::addmm", "aten::mm"}


def test_one_trace(tmp_path: Path) -> None:
    """Metadata, frame and symbols; as Python objects; calls with what they launched."""
    (path,) = copies(tmp_path, "call_stacks.json").values()
    meta, frame, symbols = parse_trace_file(path)
    assert meta["schemaVersion"] == 1
    assert len(frame) == 19
    assert "aten::mm" in symbols.sym_index
    pairs = get_cpu_gpu_correlation(frame)
    assert pairs.to_dict("list") == {"gpu_index": [14, 15, 16, 17], "cpu_index": [3, 4, 4, 11]}
    _, again, _ = parse_trace_dataframe(path, ParserConfig.get_default_cfg())
    assert_frame_equal(again, frame)
    assert len(parse_trace_dict(path)["traceEvents"]) == 19
    set_default_trace_parsing_backend(ParserBackend.IJSON)
    assert get_default_trace_parsing_backend() is ParserBackend.IJSON
    set_default_trace_parsing_backend(ParserBackend.JSON)


def test_events_for_a_trace(tmp_path: Path) -> None:
    """Counters in the trace's own clock, arrows."""
    (path,) = copies(tmp_path, "call_stacks.json").values()
    text = Path(path).read_text(encoding="utf-8").replace('"ts": ', '"ts": 1000')
    Path(path).write_text(text, encoding="utf-8")
    with Trace([path]) as trace:
        first = min(event["ts"] for event in trace.get_raw_trace_for_one_rank()["traceEvents"])
        assert trace.min_ts == first
        series = pd.DataFrame({"pid": [0], "ts": [2.5], "length": [3], "id": [7]})
        assert trace.convert_time_series_to_events(series, "Queue", "length") == [
            {"pid": 0, "ts": first + 2.5, "args": {"Queue": 3}, "ph": "C", "name": "Queue", "id": 7}
        ]
        with pytest.raises(ParameterError, match="no length"):
            trace.convert_time_series_to_events(series.drop(columns="length"), "Queue", "length")
        assert trace.convert_time_series_to_events(series.iloc[:0], "Queue", "length") == []
    start = Trace.flow_event(1, 2, 3, 4.5, True, "n", "c", {"a": 1})
    assert start == {
        "ph": "s",
        "id": 1,
        "pid": 2,
        "tid": 3,
        "ts": 4.5,
        "cat": "c",
        "name": "n",
        "args": {"a": 1},
    }
    assert Trace.flow_event(1, 2, 3, 4.5, False, "n", "c")["bp"] == "e"


def test_call_graph_of_a_frame(tmp_path: Path) -> None:
    """The same trees as of the trace, also of a part of it, by the frame's own numbers."""
    with Trace(copies(tmp_path, "call_stacks.json")) as trace:
        part = trace.get_trace(0).copy()
        whole = CallGraph(trace)
        frame, symbols = trace.get_trace(0), trace.symbol_table
    graph = CallGraph.from_dataframe(part, symbols, rank=3)
    columns = CallGraph.stack_columns
    assert_frame_equal(graph.trace_data.get_trace(3)[columns], frame[columns])
    assert graph.mapping.drop(columns="rank").equals(whole.mapping.drop(columns="rank"))
    assert "depth" not in part
    graph.trace_data.decode_symbol_ids()
    assert graph.trace_data.get_trace(3)["s_name"].iloc[0] == "ProfilerStep#1"
    late = part[part["ts"] >= 5].assign(index=lambda f: f["index"] + 100).reset_index(drop=True)
    symbols.decode_df(late, create_new_columns=False)
    above = CallGraph.from_dataframe(late)
    found = above.trace_data.get_trace(-1)
    # Without aten::linear, which started at 0, aten::addmm is on top; k1 ends at 30, k3 at 55.
    (top,) = found[found["index"] == 102][columns].to_dict("records")
    assert (top["parent"], top["depth"], top["num_kernels"]) == (-100, 0, 3)
    assert (top["first_kernel_start"], top["last_kernel_end"]) == (20.0, 55.0)
    assert above.get_stack_of_node(103)["index"].tolist() == [102, 103, 114]
    with pytest.raises(ParameterError, match="no pid"):
        CallGraph.from_dataframe(late.drop(columns="pid"))
    with pytest.raises(ParameterError, match="give the symbol table"):
        CallGraph.from_dataframe(part)
    with pytest.raises(RankError, match="of rank -1"):
        above.trace_data.get_trace(0)


def test_older_path_of_call_graphs(tmp_path: Path) -> None:
    """hta.common.call_stack."""
    with Trace(copies(tmp_path, "call_stacks.json")) as trace:
        graph = call_stack.CallGraph(trace)
        stack = graph.get_stack_of_node(node_id=3, rank=0, skip_ancestors=True)
    assert stack["index"].tolist() == [3, 14]
