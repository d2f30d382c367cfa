"""Operator figures; importing the package registers them."""

from __future__ import annotations

from hta_sql.charts.operators import costs, counts, flame_graph, work

__all__ = ["costs", "counts", "flame_graph", "work"]
