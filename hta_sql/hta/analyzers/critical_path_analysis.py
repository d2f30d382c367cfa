"""The critical path, of a Trace; its graph, nodes and edges under HTA's names."""

from __future__ import annotations

import os
from collections.abc import Collection

from hta_sql.critical_path import CPEdge, CPEdgeType, CPGraph, CPNode, restore_cpgraph
from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.critical_path import DRAWN

__all__ = [
    "DEFAULT_EDGE_TYPES_IN_VIZ",
    "CPEdge",
    "CPEdgeType",
    "CPGraph",
    "CPNode",
    "CriticalPathAnalysis",
    "restore_cpgraph",
]

DEFAULT_EDGE_TYPES_IN_VIZ = set(DRAWN)
"""Edges of the path that are drawn into a trace."""


class CriticalPathAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def critical_path_analysis(
        cls, t: Trace, rank: int, annotation: str | None, instance_id: int | tuple[int, int] | None
    ) -> tuple[CPGraph, bool] | None:
        """See :meth:`hta_sql.TraceAnalysis.critical_path_analysis`."""
        return over(t).critical_path_analysis(rank, annotation, instance_id)

    @classmethod
    def overlay_critical_path_analysis(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str | os.PathLike[str],
        only_show_critical_events: bool,
        show_all_edges: bool,
        edge_types_to_viz: Collection[CPEdgeType] | None = None,
    ) -> str:
        """See :meth:`hta_sql.TraceAnalysis.overlay_critical_path_analysis`."""
        return over(t).overlay_critical_path_analysis(
            rank,
            critical_path_graph,
            output_dir,
            only_show_critical_events,
            show_all_edges,
            edge_types_to_viz=edge_types_to_viz,
        )
