"""Provide CallGraph: HTA's call tree columns of the frames of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hta_sql.errors import RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.frames.event_frames import microseconds
from hta_sql.text import NS

__all__ = ["CallGraph"]

CALL_GRAPH_DEFAULTS: dict[str, float] = {
    "parent": -1,
    "depth": -1,
    "height": -1,
    "first_kernel_start": -1.0,
    "last_kernel_end": -1.0,
    "num_kernels": 0,
    "kernel_dur_sum": 0.0,
    "kernel_span": 0.0,
}
"""Columns that HTA adds to a rank's frame ─▶ value for events outside of call trees."""


class CallGraph:
    """Call trees of some ranks, from the analysis ``call_stack``.

    The constructor adds columns to the frames of the trace: ``parent`` (-tid of the thread for its
    outermost events)``, depth, height, first_kernel_start, last_kernel_end, num_kernels,
    kernel_dur_sum, kernel_span``. Times are in µs; -1 means none, or an event outside of all trees.

    Args:
        trace: A trace: ``TraceAnalysis.t``.
        ranks: Ranks to include; default: all.

    Attributes:
        trace_data: The trace.
        ranks: Ranks of the graph.

    Raises:
        RankError: None of the ranks is in the trace.
    """

    def __init__(self, trace: Trace, ranks: list[int] | None = None) -> None:
        self.trace_data = trace
        self.ranks = [r for r in trace.get_ranks() if not ranks or r in ranks]
        if not self.ranks:
            raise RankError(
                f"None of the ranks {ranks} is in the trace; available ranks: {trace.get_ranks()}."
            )
        for rank in self.ranks:
            table = trace.run("call_stack_v1", rank)
            _add_columns(trace.get_trace(rank), table, trace.clock_ns(rank))


def _add_columns(frame: pd.DataFrame, table: pd.DataFrame, clock_ns: int) -> None:
    """Add HTA's columns to the frame of a rank, in place.

    Args:
        frame: The frame.
        table: Rows of the analysis ``call_stack``.
        clock_ns: Time in the frame at the start of the job [ns].
    """
    none = table["kernel_count"] == 0
    parents = table["parent_id"].fillna(table["tid"].fillna(-1).map(_root_of))
    columns: dict[str, Any] = {
        "parent": np.asarray(parents, dtype=np.int64),
        "depth": table["depth"],
        "height": table["height"],
        "first_kernel_start": _times(table["first_kernel_ts"], clock_ns).mask(none, -1.0),
        "last_kernel_end": _times(table["last_kernel_end_ts"], clock_ns).mask(none, -1.0),
        "num_kernels": table["kernel_count"],
        "kernel_dur_sum": table["kernel_ns"] / NS,
        "kernel_span": (table["kernel_span_ns"] / NS).mask(none, 0.0),
    }
    for name, default in CALL_GRAPH_DEFAULTS.items():
        column = pd.Series(np.asarray(columns[name]), index=table["event_id"])
        filled = column.reindex(frame["index"]).fillna(default).to_numpy()
        frame[name] = filled if isinstance(default, float) else filled.astype(np.int64)


def _times(ns: pd.Series, clock_ns: int) -> pd.Series:
    return pd.Series(microseconds(ns.fillna(0).to_numpy(int) + clock_ns), index=ns.index)


def _root_of(tid: float) -> int:
    """Return the parent of a thread's outermost events: -tid as in HTA, never an event's index."""
    return -abs(int(tid)) or -(1 << 31)
