"""Kernel figures; importing the package registers them."""

from __future__ import annotations

from hta_sql.charts.kernels import busy_time, counters, ranks, sequences, summary, table

__all__ = ["busy_time", "counters", "ranks", "sequences", "summary", "table"]
