"""Store the ``call_stack`` analysis of one rank as arrays of parents, children and subtrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_sql.hta.frames.event_frames import microseconds
from hta_sql.text import NS

Integers = npt.NDArray[np.int64]

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


def root_of(tid: float) -> int:
    """Return the parent of a thread's outermost events: -tid as in HTA, never an event's index."""
    return -abs(int(tid)) or -(1 << 31)


class Walk:
    """The events of a rank in depth-first order of its call trees.

    The descendants of the event at position p are at ``p + 1`` to ``p + below[p]``.

    Attributes:
        ids: Position of each event in ``traceEvents``.
        parents: Parent event; -tid of the thread for an outermost event.
        below: Number of descendants.
        on_gpu: Whether the event is GPU activity.

    Args:
        table: Rows of the analysis.
        clock_ns: Time in the rank's frame at the start of the job [ns].
    """

    def __init__(self, table: pd.DataFrame, clock_ns: int = 0) -> None:
        self.ids: Integers = table["event_id"].to_numpy()
        self.below: Integers = table["descendant_count"].to_numpy()
        self.on_gpu: npt.NDArray[np.bool_] = (table["table_name"] == "gpu_ops").to_numpy()
        self.depth: Integers = table["depth"].to_numpy()
        self.height: Integers = table["height"].to_numpy()
        above = table["parent_id"].fillna(table["tid"].fillna(-1).map(root_of))
        self.parents: Integers = np.asarray(above, dtype=np.int64)
        self._place = pd.Index(self.ids)
        self._table = table
        self._clock_ns = clock_ns

    def place(self, event: int) -> int:
        """Return the position of an event, or -1 if it is not in a tree."""
        return int(self._place.get_indexer(pd.Index([event]))[0])

    def subtree(self, event: int) -> slice:
        """Return the positions of an event and its descendants; empty if it is not in a tree."""
        place = self.place(event)
        return slice(0, 0) if place < 0 else slice(place, place + 1 + int(self.below[place]))

    def children(self, event: int) -> list[int]:
        """Return the direct children of an event, or the outermost events of a root (-tid)."""
        if event < 0:
            return [int(i) for i in self.ids[self.parents == event]]
        inside = self.subtree(event)
        return [int(i) for i in self.ids[inside][self.parents[inside] == event]]

    def ancestors(self, event: int) -> list[int]:
        """Return the ancestors of an event, nearest first, then the root (-tid)."""
        found = []
        while (place := self.place(event)) >= 0:
            event = int(self.parents[place])
            found.append(event)
        return found

    def write_to(self, frame: pd.DataFrame) -> None:
        """Add HTA's columns to the frame of the rank, in place [µs; -1 for none]."""
        table = self._table
        none = table["kernel_count"] == 0
        times = {
            name: np.where(
                none, -1.0, microseconds(table[name].fillna(0).to_numpy(int) + self._clock_ns)
            )
            for name in ("first_kernel_ts", "last_kernel_end_ts")
        }
        columns: dict[str, Any] = {
            "parent": self.parents,
            "depth": self.depth,
            "height": self.height,
            "first_kernel_start": times["first_kernel_ts"],
            "last_kernel_end": times["last_kernel_end_ts"],
            "num_kernels": table["kernel_count"],
            "kernel_dur_sum": table["kernel_ns"] / NS,
            "kernel_span": (table["kernel_span_ns"] / NS).mask(none, 0.0),
        }
        for name, default in CALL_GRAPH_DEFAULTS.items():
            column = pd.Series(np.asarray(columns[name]), index=self.ids).reindex(frame["index"])
            filled = column.fillna(default).to_numpy()
            frame[name] = filled if isinstance(default, float) else filled.astype(np.int64)
