"""Provide the critical path graph under HTA's module path.

``TraceAnalysis.critical_path_analysis`` creates it.
"""

from __future__ import annotations

from hta_sql.critical_path import CPEdge, CPEdgeType, CPGraph, CPNode, restore_cpgraph

__all__ = ["CPEdge", "CPEdgeType", "CPGraph", "CPNode", "restore_cpgraph"]
