"""Tests of the context that ingest adds to events: stack, frame, backward pass and truncation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore


def event(category: str, name: str, ts: int, dur: int, **args: object) -> dict[str, Any]:
    """Return a complete event on thread 2 of process 1, with times in µs."""
    place = {"pid": 1, "tid": 2, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": category, "name": name, **place, "args": args}


def instant(name: str, ts: int, **args: object) -> dict[str, Any]:
    """Return an instant event, which has no duration."""
    return {"ph": "i", "s": "t", "name": name, "pid": 1, "tid": 2, "ts": ts, "args": args}


EVENTS = [
    event("user_annotation", "ProfilerStep#1", 0, 30),  # 0
    event("python_function", "train.py(3): step", 1, 28),
    event("user_annotation", "forward", 2, 20, **{"Input Dims": [[4]], "Call stack": "a;b"}),
    event("python_function", "nn.Module: Linear_0", 3, 18, **{"Call stack": "train.py(3): step"}),
    event("cpu_op", "aten::add.Tensor", 4, 10),
    event("cuda_runtime", "cudaLaunchKernel", 5, 2, correlation=1),  # 5
    event("kernel", "add", 50, 9, correlation=1, stream=7),
    instant("[memory]", 6, Bytes=512),
    event("python_function", "hook.py(1): hook", 8, 2),
    event("user_annotation", "ProfilerStep#2", 40, 30),
    event("python_function", "train.py(3): step", 41, 28),  # 10
    event("cpu_op", "autograd::engine::evaluate_function: AddBackward0", 42, 10),
    event("cpu_op", "AddBackward0", 43, 8, **{"Fwd thread id": 1}),
    event("cpu_op", "aten::mul.Scalar", 44, 6),
    event("user_annotation", "gloo:all_reduce", 60, 5),
    instant("Record Window End", 69),  # 15
    instant("[memory]", 90, Bytes=512),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the events above once."""
    folder: Path = tmp_path_factory.mktemp("stacks")
    trace = folder / "rank-0.json"
    trace.write_text(json.dumps({"traceEvents": EVENTS}), encoding="utf-8")
    with hta_sql.ingest({0: str(trace)}, folder / "job.store", run="run") as opened:
        yield opened


def test_a_stack_is_a_chain_of_names(store: TraceStore) -> None:
    """Each stack is stored once: the second step and its frame reuse stacks of the first."""
    query = "SELECT stack_id, parent_stack_id, depth, kind, name FROM stacks ORDER BY stack_id"
    assert store.sql(query).rows() == [
        (0, None, 0, "step", "ProfilerStep*"),
        (1, 0, 1, "frame", "train.py(3): step"),
        (2, 1, 2, "annotation", "forward"),
        (3, 2, 3, "module", "nn.Module: Linear_0"),
        (4, 3, 4, "operator", "aten::add.Tensor"),
        (5, 4, 5, "runtime", "cudaLaunchKernel"),
        (8, 4, 5, "frame", "hook.py(1): hook"),
        (11, 1, 2, "operator", "autograd::engine::evaluate_function: AddBackward0"),
        (12, 11, 3, "operator", "AddBackward0"),
        (13, 12, 4, "operator", "aten::mul.Scalar"),
        (14, 1, 2, "annotation", "gloo:all_reduce"),
    ]
    query = "SELECT event_id, stack_id FROM python_calls ORDER BY event_id"
    assert store.sql(query).rows() == [(1, 1), (3, 3), (8, 8), (10, 1)]
    query = "SELECT event_id, stack_id FROM annotations ORDER BY event_id"
    assert store.sql(query).rows() == [(0, 0), (2, 2), (9, 0), (14, 14)]


def test_what_stands_around_an_event(store: TraceStore) -> None:
    """Events have the ids of their nearest operator, annotation, module and frame."""
    query = "SELECT frame_id, stack_id FROM memory_events ORDER BY event_id"
    assert store.sql(query).rows() == [(3, 5), (None, None)]
    query = "SELECT event_id, frame_id, bwd_op_id FROM cpu_ops ORDER BY event_id"
    assert store.sql(query).rows() == [(4, 3, None), (11, 10, None), (12, 10, 12), (13, 10, 12)]
    query = "SELECT parent_frame_id, op_id, annotation_id FROM python_calls ORDER BY event_id"
    assert store.sql(query).rows() == [
        (None, None, None),
        (1, None, 2),
        (3, 4, 2),
        (None, None, None),
    ]
    query = "SELECT frame_id, stack_id, module_id FROM runtime_calls"
    assert store.sql(query).rows() == [(3, 5, 3)]
    query = "SELECT launch_pid, launch_tid, stack_id, bwd_op_id FROM gpu_ops"
    assert store.sql(query).rows() == [(1, 2, 5, None)]
    query = "SELECT op_id, module_id, frame_id FROM annotations WHERE name = 'forward'"
    assert store.sql(query).rows() == [(None, None, 1)]


def test_arguments_of_annotations_and_frames(store: TraceStore) -> None:
    """Shapes of annotations and recorded call stacks of frames are stored in columns."""
    query = "SELECT input_dims, call_stack FROM annotations WHERE name = 'forward'"
    assert store.sql(query).rows() == [("[[4]]", "a;b")]
    query = "SELECT call_stack FROM python_calls WHERE event_id = 3"
    assert store.sql(query).rows() == [("train.py(3): step",)]
    query = "SELECT event_id FROM event_args WHERE args <> '{}' AND event_id < 15"
    assert store.sql(query).rows() == []


def test_overloads(store: TraceStore) -> None:
    """The overload has its own column, and the operator name is unchanged."""
    query = "SELECT name, overload_name FROM cpu_ops ORDER BY event_id"
    assert store.sql(query).rows() == [
        ("aten::add.Tensor", "Tensor"),
        ("autograd::engine::evaluate_function: AddBackward0", None),
        ("AddBackward0", None),
        ("aten::mul.Scalar", "Scalar"),
    ]


def test_what_had_not_ended(store: TraceStore) -> None:
    """A frame that ends with the capture is truncated, and gloo events are asynchronous."""
    query = "SELECT event_id, is_truncated FROM python_calls ORDER BY event_id"
    assert store.sql(query).rows() == [(1, False), (3, False), (8, False), (10, True)]
    query = "SELECT name, is_async, is_truncated FROM annotations WHERE event_id > 2 ORDER BY ts"
    assert store.sql(query).rows() == [
        ("ProfilerStep#2", None, False),
        ("gloo:all_reduce", True, False),
    ]


def test_a_trace_without_the_end_of_its_window(ingest_trace: Callable[..., TraceStore]) -> None:
    """If the trace does not record the end of the capture, truncation is unknown."""
    opened = ingest_trace([event("cpu_op", "aten::add", 0, 5)])
    query = "SELECT is_truncated, stack_id, frame_id FROM cpu_ops"
    assert opened.sql(query).rows() == [(None, 0, None)]
