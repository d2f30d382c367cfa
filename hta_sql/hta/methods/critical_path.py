"""Implement HTA's critical path analysis and the overlay of the path on the trace."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from hta_sql.critical_path import CPGraph, critical_path
from hta_sql.critical_path.edges import CPEdge, CPEdgeType
from hta_sql.critical_path.windows import count_windows
from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.methods.job import Job
from hta_sql.library.sql_files import query_sql

log = logging.getLogger(__name__)

DRAWN = (CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY)
"""Edges of the path that the overlay draws by default, like in HTA."""

ADD_LAUNCH_EDGES = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"
SHOW_LAUNCH_EDGES = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
"""HTA's environment variables for launch edges with zero weight."""


class CriticalPath(Job):
    """Methods of TraceAnalysis: the critical path."""

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str | None,
        instance_id: int | tuple[int, int] | None,
        data_load_events: Sequence[str] | None = None,
        *,
        include_launch_edges: bool | None = None,
        infer_syncs: bool = True,
    ) -> tuple[CPGraph, bool] | None:
        """Find the critical path of a rank, in the window of an annotation or in the whole trace.

        Args:
            rank: Rank to analyze.
            annotation: Substring of the names of the host events that span the window, for example
                ``ProfilerStep``; empty or None: the whole trace.
            instance_id: Index of the matching event in order of time, from 0. ``(first, last)``
                spans several events; None selects the first.
            data_load_events: Substrings of the names of data loading ranges, whose time counts as
                ``data_loading``.
            include_launch_edges: Make every kernel depend on its launch with zero weight, for
                what-if questions. None: only if the environment has
                ``CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE=1``.
            infer_syncs: Infer waits without a synchronization record from the work that ended
                during them. Traces captured with ``enable_cuda_sync_events=True`` have such
                records. False ignores waits without a record, like HTA.

        Returns:
            The graph, and whether it has a path (a window without operators has none). None if no
            host event has such a name.

        Raises:
            RankError: The rank does not exist.
            ParameterError: The instance does not exist.
        """
        (wanted,) = self._default_ranks([rank])
        first, last = instance_id if isinstance(instance_id, tuple) else (instance_id or 0, None)
        if first < 0 or (last is not None and last < first):
            raise ParameterError(
                f"instance_id must be an integer of at least 0, or (first, last), not {instance_id!r}."
            )
        self._warn_of_missing_syncs(wanted, infer_syncs=infer_syncs)
        if include_launch_edges is None:
            include_launch_edges = os.environ.get(ADD_LAUNCH_EDGES) == "1"
        graph = critical_path(
            self.store,
            wanted,
            self.run,
            annotation=annotation,
            first_instance=first,
            last_instance=last,
            data_load_names=list(data_load_events) if data_load_events else None,
            include_last_profiler_step=self.include_last_profiler_step,
            include_launch_edges=include_launch_edges,
            infer_syncs=infer_syncs,
        )
        if graph is None:
            windows = count_windows(
                self.store,
                self.run,
                wanted,
                annotation or "",
                include_last_profiler_step=self.include_last_profiler_step,
            )
            log.error("%s", windows)
            return None
        if not graph.critical_path_nodes:
            log.error(
                "Rank %d has no host operator in the window, so there is no critical path.", rank
            )
        return graph, bool(graph.critical_path_nodes)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str | os.PathLike[str],
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Write the trace with the critical path drawn in, for Perfetto or Chrome.

        Events on the path have the argument ``critical: 1``; edges are arrows named
        ``critical_path`` with ``type``, ``weight`` (µs) and ``critical``.

        Args:
            rank: Rank of the graph.
            critical_path_graph: Graph that :meth:`critical_path_analysis` returned.
            output_dir: Output folder; created if it does not exist.
            only_show_critical_events: Omit complete events that are not on the path, except
                annotations and Python frames.
            show_all_edges: Draw all edges of the graph, not only dependencies, launch delays and
                waits of the path. Ignored if only critical events are shown. Launch edges with zero
                weight are drawn only if the environment has
                ``CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE=1``.

        Returns:
            Path of the file: ``overlaid_critical_path_<trace>.json.gz``.

        Raises:
            RankError: The graph belongs to a different rank or run.
            TraceError: The trace has changed, or the folder is not writable.
            TraceNotFoundError: The trace no longer exists.
        """
        from hta_sql.overlay.critical_path import overlay_critical_path  # noqa: PLC0415 - imported only when needed

        graph = critical_path_graph
        if (graph.run, graph.rank) != (self.run, rank):
            raise RankError(
                f"The graph belongs to rank {graph.rank} of {graph.run!r}, not to rank {rank} of "
                f"{self.run!r}."
            )
        written = overlay_critical_path(
            self.store,
            graph,
            _drawn(graph)
            if show_all_edges and not only_show_critical_events
            else [edge for edge in graph.critical_path_edges if edge.type in DRAWN],
            folder=output_dir,
            only_critical=only_show_critical_events,
        )
        return written.path

    def _warn_of_missing_syncs(self, rank: int, *, infer_syncs: bool) -> None:
        about: dict[str, Any] = {"run": self.run, "rank": rank}
        ((syncs, others),) = self.store.sql(query_sql("critical_path", "syncs"), about).rows()
        if others and not syncs:  # without a device there are no waits
            log.warning(
                "Rank %d has no synchronization records: waits are %s. Profile with "
                "enable_cuda_sync_events=True.",
                rank,
                "inferred" if infer_syncs else "omitted",
            )


def _drawn(graph: CPGraph) -> list[CPEdge]:
    edges = [graph.edges.edge(at) for at in range(len(graph.edges))]
    if os.environ.get(SHOW_LAUNCH_EDGES) == "1":
        return edges
    delay = CPEdgeType.KERNEL_LAUNCH_DELAY
    return [edge for edge in edges if edge.type is not delay or edge.weight_ns]
