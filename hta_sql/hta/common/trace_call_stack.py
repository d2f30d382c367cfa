"""Provide CallStackGraph: the call tree of one thread, with HTA's methods."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from hta_sql.hta.methods.call_walk import Walk, root_of

__all__ = ["CallStackGraph", "CallStackIdentity"]

NON_EXISTENT_NODE_INDEX = -2


class CallStackIdentity(NamedTuple):
    """Identity of a call tree: rank, process and thread."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


class CallStackGraph:
    """Call tree of one thread; backward threads are children of the main thread's annotations.

    Attributes:
        identity: Rank, process and thread.
        df: Host events of the thread.
        full_df: All events of the rank.
        root_index: Parent index of the outermost events: -tid.
    """

    def __init__(self, identity: CallStackIdentity, frame: pd.DataFrame, walk: Walk) -> None:
        self.identity = identity
        self.full_df = frame
        own = (frame["pid"] == identity.pid) & (frame["tid"] == identity.tid)
        self.df = frame.loc[own & frame["depth"].ge(0) & frame["height"].ge(1)]
        self.root_index = root_of(identity.tid)
        self._walk = walk

    def get_parent(self, idx: int) -> int:
        """Return the parent event: -tid for an outermost event, -2 for events outside of trees."""
        place = self._walk.place(idx)
        return int(self._walk.parents[place]) if place >= 0 else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx: int) -> list[int]:
        """Return the direct children of an event or of the root."""
        return self._walk.children(idx)

    def get_path_to_root(self, idx: int) -> list[int]:
        """Return an event, its ancestors (nearest first) and the root."""
        above = self._walk.ancestors(idx)
        return [idx, *above] if above else []

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """Return an event and all its descendants, in depth-first order."""
        inside = self._walk.subtree(idx)
        kept = self._walk.ids[inside]
        if not include_gpu_kernel:
            kept = kept[~self._walk.on_gpu[inside]]
        return [int(event) for event in kept]

    def get_dataframe(self) -> pd.DataFrame:
        """Return the host events of the thread."""
        return self.df
