"""Tests that backward operators are linked to their forward operators by arrows in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

FORWARD, BACKWARD = 1, 2


def op(name: str, ts: int, dur: int, tid: int, sequence: int | None = None) -> dict[str, Any]:
    """Return an operator, with times in µs."""
    args = {} if sequence is None else {"Sequence number": sequence}
    place = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": tid}
    return {**place, "name": name, "ts": ts, "dur": dur, "args": args}


def arrow(phase: str, ts: int, tid: int) -> dict[str, Any]:
    """Return one end of the arrow from a forward operator to its backward operator."""
    return {"ph": phase, "cat": "fwdbwd", "id": 7, "pid": 1, "tid": tid, "ts": ts, "name": "fwdbwd"}


def test_operators_of_one_microsecond_are_told_apart_by_their_sequence_number(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """If multiple operators start at an arrow, the sequence number selects the right one."""
    events = [
        op("aten::linear", 10, 30, FORWARD),
        op("aten::addmm", 10, 20, FORWARD, sequence=5),
        op("aten::empty", 10, 1, FORWARD),
        arrow("s", 10, FORWARD),
        op("autograd::engine", 50, 30, BACKWARD, sequence=5),
        op("AddmmBackward0", 50, 20, BACKWARD),
        arrow("f", 50, BACKWARD),
    ]
    store = ingest_trace(events)
    pairs = """
        SELECT b.name, f.name
        FROM cpu_ops AS b
        JOIN cpu_ops AS f ON f.event_id = b.fwd_op_id
    """
    assert store.sql(pairs).rows() == [("autograd::engine", "aten::addmm")]


def test_without_numbers_the_outermost_operators_belong_together(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """Without sequence numbers, as in old traces, the arrow links the outermost operators."""
    events = [
        op("aten::linear", 10, 30, FORWARD),
        op("aten::addmm", 10, 20, FORWARD),
        arrow("s", 10, FORWARD),
        op("AddmmBackward0", 50, 20, BACKWARD),
        arrow("f", 50, BACKWARD),
    ]
    store = ingest_trace(events)
    assert store.sql("SELECT fwd_op_id FROM cpu_ops WHERE name = 'AddmmBackward0'").rows() == [(0,)]


def test_without_arrows_the_earliest_and_outermost_operator_is_the_forward_operator(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """Sequence numbers link to the operator that started first, in any order of events."""

    def numbered(name: str, ts: int, dur: int, thread: int = FORWARD) -> dict[str, Any]:
        event = op(name, ts, dur, thread, sequence=5)
        event["args"]["Fwd thread id"] = int(thread == BACKWARD)
        return event

    events = [
        numbered("aten::late", 20, 5),
        numbered("aten::inner", 10, 4),
        numbered("aten::outer", 10, 8),
        numbered("AddmmBackward0", 50, 20, BACKWARD),
    ]
    store = ingest_trace(events)
    linked = "SELECT f.name FROM cpu_ops AS b JOIN cpu_ops AS f ON f.event_id = b.fwd_op_id"
    assert store.sql(linked).rows() == [("aten::outer",)]


def test_an_arrow_links_the_outermost_operators_in_any_order_of_events(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """If several operators start at an arrow, the longest one is the outermost one."""
    events = [
        op("aten::addmm", 10, 20, FORWARD),
        op("aten::linear", 10, 30, FORWARD),
        arrow("s", 10, FORWARD),
        op("AddmmBackward0", 50, 20, BACKWARD),
        op("autograd::engine", 50, 30, BACKWARD),
        arrow("f", 50, BACKWARD),
    ]
    store = ingest_trace(events)
    linked = "SELECT b.name, f.name FROM cpu_ops AS b JOIN cpu_ops AS f ON f.event_id = b.fwd_op_id"
    assert store.sql(linked).rows() == [("autograd::engine", "aten::linear")]
