"""Filters, call graphs and timelines give the numbers that HTA gives on its own test traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_sql.hta.analyzers.timeline import prepare_timeline_gpu_events
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph
from hta_sql.hta.common.trace_filter import (
    CPUOperatorFilter,
    FirstIterationFilter,
    GPUKernelFilter,
    TimeRangeFilter,
)
from hta_sql.hta.common.trace_stack_filter import CombinedOperatorFilter, UnderOperatorFilter
from tests.parity.jobs import TRACES, files_of


def test_a39_a40_a41_filters(trace_of: Callable[[str], Trace]) -> None:
    """Rows of one rank that HTA's filters keep (times there are the file's)."""
    trace = trace_of("hta_trace_filter")
    trace.decode_symbol_ids(use_shorten_name=False)
    frame = trace.get_trace(0)
    first = int(frame["index"].iloc[0])
    start = trace.get_raw_trace_for_one_rank(0)["traceEvents"][first]["ts"] - frame["ts"].iloc[0]
    window = (1682725898237042 - start, 1682725898240570 - start)
    assert len(TimeRangeFilter(window)(frame)) == 93
    names = ("## forward ##", "All2All_Pooled_Wait", "forward")
    assert len(CombinedOperatorFilter(*names)(frame)) == 2
    with_kernels = CombinedOperatorFilter(*names, include_gpu_kernels=True)(frame)
    assert (len(with_kernels), sum(with_kernels["stream"] > 0)) == (3, 1)
    names = ("## forward ##", "All2All_Pooled_Wait", "## sdd_preprocess_tensors ##")
    with_kernels = CombinedOperatorFilter(*names, include_gpu_kernels=True)(frame)
    assert (len(with_kernels), sum(with_kernels["stream"] > 0)) == (411, 104)
    forward = UnderOperatorFilter("forward", 0, include_gpu_kernels=True)
    assert len(forward(FirstIterationFilter()(frame))) == 146


def test_a42_syncs_are_on_the_device(trace_of: Callable[[str], Trace]) -> None:
    """Event Sync and Context Sync have no stream, and are device activity all the same."""
    trace = trace_of("hta_cp_event_sync")
    frame, symbols = trace.get_trace(trace.get_ranks()[0]), trace.symbol_table
    assert sum(GPUKernelFilter()(frame, symbols)["stream"] == -1) == 3
    syncs = [symbols.sym_index.get(name, -2) for name in ("Event Sync", "Context Sync")]
    assert not CPUOperatorFilter()(frame, symbols)["name"].isin(syncs).any()


def test_timeline(trace_of: Callable[[str], Trace]) -> None:
    """Device activity of the first step, by stream."""
    trace = trace_of("hta_trace_filter")
    trace.align_and_filter_trace(include_last_profiler_step=False)
    ranks = trace.get_ranks()
    frame = pd.concat([trace.get_trace(r).assign(rank=r) for r in ranks], ignore_index=True)
    events = prepare_timeline_gpu_events(frame, trace.symbol_table)
    assert events.groupby("task").size().to_dict() == {
        f"rank {rank} stream {stream}": count
        for rank, counts in ((0, (526, 63, 8, 4, 1)), (1, (501, 63, 8, 4, 1)))
        for stream, count in zip((7, 23, 25, 84, 203), counts, strict=True)
    }


def test_a43_call_graph(trace_of: Callable[[str], Trace]) -> None:
    """The chain of a kernel of the backward thread goes up to the step of the main thread."""
    graph = CallGraph(trace_of("hta_call_stack"))
    assert len(graph.trace_data.get_trace(graph.ranks[0])) == 7
    assert graph.mapping["label"].tolist() == ["main", "bwd"]
    assert set(graph.mapping["stack_root"]) == {-3914}
    graph.trace_data.decode_symbol_ids()
    stack = graph.get_stack_of_node(5)
    assert list(stack["index"]) == [0, 1, 2, 3, 4, 6, 5]
    assert list(stack["parent"]) == [-3914, 0, 1, 2, 3, 4, 6]
    assert list(stack["depth"]) == list(range(7))
    assert list(stack["height"]) == list(range(6, -1, -1))
    assert set(stack["num_kernels"]) == {1}
    assert set(stack["kernel_span"]) == {45.0}
    assert list(stack["s_name"])[:-1] == [
        "ProfilerStep#552",
        "## backward ##",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "AddmmBackward0",
        "aten::mm",
        "cudaLaunchKernel",
    ]
    assert "cutlass" in stack["s_name"].iloc[-1]


def test_a43_without_the_annotation(tmp_path: Path) -> None:
    """Without ``## backward ##`` the autograd operator is below the step."""
    if not TRACES.is_dir():
        pytest.skip("the public traces are not beside the repository")
    (path,) = files_of("hta_call_stack")
    content = json.loads(gzip.decompress(path.read_bytes()))
    for event in content["traceEvents"]:
        if event.get("name") == "## backward ##":
            event["name"] = "something else"
            event["dur"] = 0
    (tmp_path / "trace.json").write_text(json.dumps(content), encoding="utf-8")
    with Trace(trace_dir=str(tmp_path)) as trace:
        stack = CallGraph(trace).get_stack_of_node(5)
        assert list(stack["index"]) == [0, 2, 3, 4, 6, 5]
