"""The graph of a critical path under HTA's path; ``TraceAnalysis.critical_path_analysis`` makes it."""

from __future__ import annotations

from hta_sql.critical_path import CPEdge, CPEdgeType, CPGraph, CPNode, restore_cpgraph

__all__ = ["CPEdge", "CPEdgeType", "CPGraph", "CPNode", "restore_cpgraph"]
