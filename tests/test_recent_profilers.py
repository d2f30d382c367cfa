"""Tests for what PyTorch 2.14 writes: lanes of graphs, labels of kernels, counters, protobuf."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.errors import TraceFormatError, TraceNotFoundError

Event = dict[str, Any]


def event(cat: str, name: str, ts: float, dur: float, tid: int, **args: object) -> Event:
    """Return a complete event; device activity has process 0."""
    is_device = cat in ("kernel", "cuda_sync")
    place = {"pid": 0 if is_device else 1, "tid": tid}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **place, "args": args}


def ingested(tmp_path: Path, events: list[Event]) -> hta_sql.TraceStore:
    """Ingest events as the trace of rank 0."""
    path = tmp_path / "0.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return hta_sql.ingest(path, tmp_path / "store")


def kernel(named: str, ts: float, dur: float, correlation: int, **args: object) -> Event:
    """Return a kernel on stream 7."""
    place = {"device": 0, "stream": 7, "correlation": correlation}
    return {**event("kernel", named, ts, dur, 7), "args": {**place, **args}}


def launch(ts: float, correlation: int, **args: object) -> Event:
    """Return the launch of a kernel."""
    return event("cuda_runtime", "cudaLaunchKernel", ts, 2, 1, correlation=correlation, **args)


def test_lanes_of_graphs_are_no_streams(tmp_path: Path) -> None:
    """A kernel on a lane for display keeps its stream, and the name of its region labels it."""
    node = {"graph id": 3, "graph node id": 5}
    lane = kernel("a", 20, 10, 1, **node, stream=100, original_stream=7, name="phase_A")
    store = ingested(
        tmp_path,
        [
            event("cuda_runtime", "cudaGraphLaunch", 10, 5, 1, correlation=1),
            {**lane, "tid": 100},
            kernel("b", 40, 10, 1, **{**node, "graph node id": 6}),
        ],
    )
    query = "SELECT name, stream, graph_region FROM gpu_ops ORDER BY name"
    assert store.sql(query).rows() == [("a", 7, "phase_A"), ("b", 7, None)]
    regions = store.run("graph_kernels").df().set_index("name")["graph_region"]
    assert regions["a"] == "phase_A"


def test_counters_of_the_monitor_are_hardware_counters(tmp_path: Path) -> None:
    """The monitor names the device in the process and writes no category."""
    counter = {"ph": "C", "name": "sm__throughput", "pid": "GPU 0 Counters"}
    samples = [{**counter, "ts": 10.0 * at, "args": {"": 10.0 * at}} for at in range(1, 6)]
    store = ingested(tmp_path, [launch(5, 1), kernel("a", 20, 10, 1), *samples])
    (row,) = store.run("kernel_counters").records()
    assert (row["device"], row["counter"], row["mean_value"]) == (0, "sm__throughput", 20)


@pytest.mark.parametrize("start", [b"\n#@\x00\xe2\x03\x1e\x08", b"\n\x80\x01\x50\x01"])
def test_protobuf_is_refused_by_name(tmp_path: Path, start: bytes) -> None:
    """A Perfetto file is named, with what to pass instead, alone and in a folder."""
    path = tmp_path / "job" / "trace.pftrace"
    path.parent.mkdir()
    path.write_bytes(start + bytes(100))
    with pytest.raises(TraceFormatError, match=r"Perfetto.*export_chrome_trace"):
        hta_sql.ingest(path, tmp_path / "store")
    with pytest.raises(TraceNotFoundError, match=r"1 file \*\.pftrace.*export_chrome_trace"):
        hta_sql.ingest(path.parent, tmp_path / "store")


COLLECTIVE = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 4,
    "Out msg nelems": 4,
    "Group size": 2,
}
WAIT = {"device": 0, "stream": 7, "cuda_sync_kind": "Stream Wait Event"}
BACKWARD = "autograd::engine::evaluate_function: "

GOOD = [
    launch(10, 1),
    kernel("a", 20, 10, 1),
    event("cuda_runtime", "cudaEventRecord", 32, 1, 1, correlation=2),
    event("cuda_sync", "Stream Wait Event", 40, 1, 7, **WAIT, wait_on_cuda_event_record_corr_id=2),
    event("cuda_sync", "Stream Sync", 50, 1, 7, device=0, stream=7, cuda_sync_kind="Stream Sync"),
    event("cpu_op", "record_param_comms", 60, 1, 1, **COLLECTIVE),
    event("cpu_op", f"{BACKWARD}AddBackward0", 70, 1, 1, **{"Sequence number": 5}),
    event("cpu_op", f"{BACKWARD}MulBackward0", 72, 1, 1, **{"Sequence number": 6}),
]
"""A trace that PyTorch's validator passes."""

BROKEN = {
    "kernels_before_launch": (1, kernel("a", 8, 1, 1)),
    "waits_without_record": (
        3,
        event(
            "cuda_sync", "Stream Wait Event", 40, 1, 7, **WAIT, wait_on_cuda_event_record_corr_id=-1
        ),
    ),
    "waits_before_record": (2, event("cuda_runtime", "cudaEventRecord", 45, 1, 1, correlation=2)),
    "syncs_before_kernels": (1, kernel("a", 20, 40, 1)),
    "collectives_without_metadata": (
        5,
        event("cpu_op", "record_param_comms", 60, 1, 1, **{**COLLECTIVE, "dtype": None}),
    ),
    "sequence_numbers_shared": (
        7,
        event("cpu_op", f"{BACKWARD}MulBackward0", 72, 1, 1, **{"Sequence number": 5}),
    ),
}
"""Finding ─▶ the event of GOOD to replace, and an event that breaks the rule."""


def rules(store: hta_sql.TraceStore) -> set[str]:
    """Return the findings of the store about rules of the validator."""
    return {row["finding"] for row in store.run("findings").records()} & set(BROKEN)


def test_a_valid_trace_breaks_no_rule(tmp_path: Path) -> None:
    """No rule reports a trace that PyTorch's validator passes."""
    assert rules(ingested(tmp_path, GOOD)) == set()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_a_finding(tmp_path: Path, rule: str) -> None:
    """Each rule of PyTorch's validator is a finding, and breaking it breaks no other rule."""
    place, broken = BROKEN[rule]
    events = [*GOOD[:place], broken, *GOOD[place + 1 :]]
    assert rules(ingested(tmp_path, events)) == {rule}
