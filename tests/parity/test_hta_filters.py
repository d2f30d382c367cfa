"""Filters, call graphs and timelines match the numbers in HTA's own tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_sql import TraceStore
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph
from hta_sql.hta.common.trace_filter import GPUKernelFilter, TimeRangeFilter
from tests.filter_recipes import RECIPES
from tests.parity.jobs import TRACES, files_of


def test_a39_time_range(trace_of: Callable[[str], Trace]) -> None:
    """Before the ranks are aligned, times are those in the file."""
    trace = trace_of("hta_trace_filter")
    trace.parse_traces()
    frame = trace.get_trace(0)
    assert len(TimeRangeFilter((1682725898237042, 1682725898240570))(frame)) == 93


def chosen(store: TraceStore, recipe: str, **names: str) -> pd.DataFrame:
    """Return the rows of rank 0 that a recipe in docs/filters.md selects with the given names."""
    sql = dict(RECIPES)[recipe].replace("trace_events(", "trace_events(ranks := [0], ")
    for shown, name in names.items():
        sql = sql.replace(f"'{shown}'", f"'{name}'")
    return store.sql(sql.replace("## forward ##", names.get("root", "## forward ##"))).df()


def test_a40_a41_operators_in_sql(trace_of: Callable[[str], Trace]) -> None:
    """The SQL recipes select as many rows as HTA's operator filters."""
    store = trace_of("hta_trace_filter").job.store
    combined = 'CombinedOperatorFilter("## forward ##", "wait", "preprocess")'
    names = {"wait": "All2All_Pooled_Wait"}
    assert len(chosen(store, combined, **names, preprocess="forward")) == 2
    kept = chosen(store, combined, **names, preprocess="## sdd_preprocess_tensors ##")
    assert len(kept) == 411 - 104
    under = 'UnderOperatorFilter("## forward ##", 0, include_gpu_kernels=True)'
    assert len(chosen(store, under, root="forward")) == 146


def test_a42_syncs_are_on_the_device(trace_of: Callable[[str], Trace]) -> None:
    """Event Sync and Context Sync have no stream, but count as device activity."""
    trace = trace_of("hta_cp_event_sync")
    frame, symbols = trace.get_trace(trace.get_ranks()[0]), trace.symbol_table
    kept = GPUKernelFilter()(frame, symbols)
    assert sum(kept["stream"] == -1) == 3
    syncs = [symbols.sym_index.get(name, -2) for name in ("Event Sync", "Context Sync")]
    assert not frame.drop(kept.index)["name"].isin(syncs).any()


def test_timeline(trace_of: Callable[[str], Trace]) -> None:
    """The timeline has the device activity of all steps except the last, by stream."""
    trace = trace_of("hta_trace_filter")
    trace.align_and_filter_trace(include_last_profiler_step=False)
    counts = {0: (526, 63, 8, 4, 1), 1: (501, 63, 8, 4, 1)}
    for rank, expected in counts.items():
        frame = trace.get_trace(rank)
        in_steps = frame[(frame["stream"] >= 0) & (frame["iteration"] >= 0)]
        assert in_steps["stream"].value_counts().to_dict() == dict(
            zip((7, 23, 25, 84, 203), expected, strict=True)
        )


def test_a43_call_graph(trace_of: Callable[[str], Trace]) -> None:
    """The stack of a kernel launched in the backward thread reaches the step in the main thread."""
    trace = trace_of("hta_call_stack")
    (rank,) = CallGraph(trace).ranks
    threads = trace.run("call_stack_threads", rank).sort_values("thread_id")
    assert threads["label"].tolist() == ["main", "backward"]  # HTA: bwd
    assert len(set(threads["tree_id"])) == 1
    trace.decode_symbol_ids()
    stack = trace.get_trace(rank).loc[[0, 1, 2, 3, 4, 6, 5]]
    assert len(trace.get_trace(rank)) == len(stack)
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
    """Without the annotation ``## backward ##``, the autograd operator is below the step."""
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
        CallGraph(trace)
        parents = trace.get_trace(0)["parent"]
        assert parents[[2, 3, 4, 6, 5]].tolist() == [0, 2, 3, 4, 6]
