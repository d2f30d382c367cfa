"""Helpers that build small traces from short descriptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_graph import CallGraph

Event = dict[str, Any]

THREAD = 5


def host(name: str, ts: float, dur: float = 1, cat: str = "cpu_op", **args: Any) -> Event:
    """Return a host event, with times in µs."""
    place = {"pid": 1, "tid": THREAD, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, **place, "args": args}


def device(
    name: str, ts: float, dur: float = 1, cat: str = "kernel", tid: int = 7, **args: Any
) -> Event:
    """Return a device operation, with times in µs, by default on stream 7."""
    place = {"pid": 0, "tid": tid, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, **place, "args": {"stream": 7, **args}}


def tree(starts: list[int], durations: list[int]) -> list[Event]:
    """Return nested operators on one thread, with times in µs."""
    spans = zip(starts, durations, strict=True)
    return [host(f"op{n}", start, duration) for n, (start, duration) in enumerate(spans)]


def write(folder: Path, events: list[Event], **about: Any) -> Trace:
    """Write events to a trace file and open it with all steps."""
    path = folder / "trace.json"
    path.write_text(json.dumps({**about, "traceEvents": events}), encoding="utf-8")
    return Trace({0: str(path)})


def frame_of(trace: Trace, *, with_stacks: bool = False) -> pd.DataFrame:
    """Return the frame of rank 0, in which the root of each thread is numbered -1.

    HTA uses the negative thread id as the number of this root.
    """
    if with_stacks:
        CallGraph(trace)
        frame = trace.get_trace(0)
        return frame.assign(parent=frame["parent"].replace(-THREAD, -1))
    return trace.get_trace(0)


def overlapping(trace: Trace, table: str) -> list[int]:
    """List the events in a table that partially overlap a different event on their thread."""
    query = (
        "SELECT t.event_id FROM query_table($table) AS t WHERE t.overlaps "
        "AND list_contains($runs, t.run) AND list_contains($ranks, t.rank)"
    )
    return sorted(trace.sql(query, 0, {"table": table})["event_id"])
