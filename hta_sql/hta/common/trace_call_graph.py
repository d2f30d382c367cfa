"""Provide CallGraph: the call trees of all threads, with HTA's methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd

from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_call_stack import CallStackGraph, CallStackIdentity
from hta_sql.hta.methods.call_walk import CALL_GRAPH_DEFAULTS, Walk, root_of

__all__ = ["CallGraph"]

_LABELS = {"main": "main", "backward": "bwd"}


class CallGraph:
    """Call trees of some ranks, from the analyses ``call_stack`` and ``call_stack_threads``.

    The constructor adds columns to the frames of the trace: ``parent, depth, height,
    first_kernel_start, last_kernel_end, num_kernels, kernel_dur_sum, kernel_span``. Times are in
    µs; -1 means none, or an event outside of all trees.

    Args:
        trace: A trace: ``TraceAnalysis.t``.
        ranks: Ranks to include; default: all.

    Attributes:
        trace_data: The trace.
        ranks: Ranks of the graph.
        mapping: One row per thread: ``rank, pid, tid``, ``label`` (main, bwd, or the name of its
            first event), ``stack_index`` (index in ``call_stacks``), ``stack_root`` (-tid of the
            tree that contains the thread), ``count`` (number of the thread in that tree, from 1).
        call_stacks: A :class:`CallStackGraph` per thread.

    Raises:
        RankError: None of the ranks is in the trace.
    """

    stack_columns: ClassVar[list[str]] = list(CALL_GRAPH_DEFAULTS)

    def __init__(self, trace: Trace, ranks: list[int] | None = None) -> None:
        self.trace_data = trace
        self.ranks = [r for r in trace.get_ranks() if not ranks or r in ranks]
        if not self.ranks:
            raise RankError(
                f"None of the ranks {ranks} is in the trace; available ranks: {trace.get_ranks()}."
            )
        self._walks: dict[int, Walk] = {}
        self.call_stacks: list[CallStackGraph] = []
        rows: list[dict[str, Any]] = []
        for rank in self.ranks:
            frame = trace.get_trace(rank)
            self._walks[rank] = Walk(trace.run("call_stack_v1", rank), trace.clock_ns(rank))
            self._walks[rank].write_to(frame)
            for row in self._threads(rank):
                identity = CallStackIdentity(rank, row["pid"], row["tid"])
                rows.append({**row, "rank": rank, "stack_index": len(self.call_stacks)})
                self.call_stacks.append(CallStackGraph(identity, frame, self._walks[rank]))
        columns = ["rank", "pid", "tid", "label", "stack_index", "stack_root"]
        self.mapping = pd.DataFrame(rows, columns=columns)
        self.mapping["count"] = self.mapping.groupby(["rank", "stack_root"]).cumcount() + 1
        self._rank = self.ranks[0]

    def get_call_stacks(
        self,
        rank: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        stack_index: int | None = None,
    ) -> Iterator[CallStackGraph]:
        """Yield the call trees of the selected threads."""
        chosen = self.mapping
        wanted = {"rank": rank, "pid": pid, "tid": tid, "stack_index": stack_index}
        for column, value in wanted.items():
            if value is not None:
                chosen = chosen[chosen[column] == value]
        yield from (self.call_stacks[place] for place in chosen["stack_index"])

    def get_node_attributes(self, index: int, rank: int | None = None) -> pd.Series:
        """Return the row of an event; default rank: the rank of the previous call.

        Raises:
            ParameterError: The frame has no such event.
        """
        frame = self.trace_data.get_trace(self._chosen(rank))
        if index not in frame.index:
            raise ParameterError(f"There is no event {index} in the frame of rank {self._rank}.")
        (row,) = (row for _, row in frame.loc[[index]].iterrows())
        return row

    def get_csg_of_node(self, index: int, rank: int | None = None) -> CallStackGraph:
        """Return the call tree of an event's thread; for GPU activity, of the launching thread.

        Raises:
            ParameterError: The event is not in a call tree.
        """
        node = self.get_node_attributes(index, rank)
        if node["height"] == 0:
            node = self.get_node_attributes(int(node["parent"]))
        stacks = self.get_call_stacks(self._rank, node["pid"], node["tid"])
        found = next(stacks, None) if node["depth"] >= 0 else None
        if found is None:
            raise ParameterError(f"Event {index} of rank {self._rank} is not part of a call tree.")
        return found

    def get_stack_of_node(
        self, index: int, rank: int | None = None, skip_ancestors: bool = False
    ) -> pd.DataFrame:
        """Return an event, its descendants and, unless skipped, its ancestors, sorted by start.

        Raises:
            ParameterError: The event is not in a call tree.
        """
        stack = self.get_csg_of_node(index, rank)
        events = set(stack.get_descendants(index, include_gpu_kernel=True))
        if not skip_ancestors:
            events.update(event for event in stack.get_path_to_root(index) if event >= 0)
        frame = stack.full_df.loc[sorted(events)]
        return frame.sort_values(["ts", "depth"], kind="stable")

    def get_gpu_kernels(self, rank: int | None = None) -> pd.DataFrame:
        """Return the events of a rank that ran on a device stream."""
        frame = self.trace_data.get_trace(self._chosen(rank))
        return frame.loc[frame["stream"] != -1]

    def _chosen(self, rank: int | None) -> int:
        if rank is not None:
            if rank not in self.ranks:
                raise RankError(
                    f"No rank {rank} in this call graph; available ranks: {self.ranks}."
                )
            self._rank = rank
        return self._rank

    def _threads(self, rank: int) -> Iterator[dict[str, Any]]:
        """Yield pid, tid, label and root of each thread.

        A backward thread that appears in two trees is assigned to its own tree.
        """
        table = self.trace_data.run("call_stack_threads_v1", rank)
        table[["pid", "tid"]] = table[["pid", "tid"]].fillna(-1).astype("int64")
        own = table["tree_id"] == table["thread_id"]
        tids = table[own].set_index("tree_id")["tid"]
        ordered = table.assign(own=own).sort_values(["thread_id", "own"])
        for row in ordered.drop_duplicates("thread_id", keep="last").to_dict("records"):
            yield {
                "pid": row["pid"],
                "tid": row["tid"],
                "label": _LABELS.get(row["label"], row["first_name"]),
                "stack_root": root_of(int(tids[row["tree_id"]])),
            }
