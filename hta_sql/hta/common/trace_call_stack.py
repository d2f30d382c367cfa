"""CallStackGraph: the call tree of one thread, with HTA's calls."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from hta_sql.hta.methods.call_walk import Walk, root_of

__all__ = ["CallStackGraph", "CallStackIdentity"]

NON_EXISTENT_NODE_INDEX = -2


class CallStackIdentity(NamedTuple):
    """The thread of a call tree."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


class CallStackGraph:
    """The call tree of one thread; backward threads hang below the main thread's annotations.

    Attributes:
        identity: Rank, process and thread.
        df: Host events of the thread.
        full_df: All events of the rank.
        root_index: -tid: what the outermost events have as their parent.
    """

    def __init__(self, identity: CallStackIdentity, frame: pd.DataFrame, walk: Walk) -> None:
        self.identity = identity
        self.full_df = frame
        own = (frame["pid"] == identity.pid) & (frame["tid"] == identity.tid)
        self.df = frame.loc[own & frame["depth"].ge(0) & frame["height"].ge(1)]
        self.root_index = root_of(identity.tid)
        self._walk = walk

    def get_parent(self, idx: int) -> int:
        """Return the event above; -tid for an outermost one, -2 for one that is in no tree."""
        place = self._walk.place(idx)
        return int(self._walk.parents[place]) if place >= 0 else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx: int) -> list[int]:
        """List the events directly below one, or below the root."""
        return self._walk.children(idx)

    def get_path_to_root(self, idx: int) -> list[int]:
        """List an event, those above it, nearest first, and the root."""
        above = self._walk.ancestors(idx)
        return [idx, *above] if above else []

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """List an event and everything below it, in the order of the walk."""
        inside = self._walk.subtree(idx)
        kept = self._walk.ids[inside]
        if not include_gpu_kernel:
            kept = kept[~self._walk.on_gpu[inside]]
        return [int(event) for event in kept]

    def get_dataframe(self) -> pd.DataFrame:
        """Return the host events of the thread."""
        return self.df
