"""Marks figures, such as mfu_pct, as lower bounds if the FLOPs of many kernels are unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hta_sql.library.objects import SqlObject

COVERED_PCT = 90
"""Share of kernel time with known FLOPs below which a figure is a lower bound [%]."""

BOUNDED = {
    "kpis": {"mfu_pct": "mfu_covered_pct"},
    "mfu": {"mfu_pct": "covered_pct", "achieved_tflops": "covered_pct"},
}
"""Analysis ─▶ figure that counting the unknown work could only raise ─▶ coverage column."""


def is_lower_bound(covered_pct: float | None) -> bool:
    """Return whether a figure that covers this share of kernel time is a lower bound."""
    return covered_pct is not None and covered_pct < COVERED_PCT


def mark_lower_bounds(
    name: str, cells: list[str], analysis: SqlObject | None, values: Mapping[str, Sequence[Any]]
) -> list[str]:
    """Return the cells of a column, with ≥ before lower bounds.

    Args:
        name: The column.
        cells: Its values as strings.
        analysis: The analysis of the rows.
        values: Column ─▶ values, for all columns of the result.
    """
    coverage = BOUNDED.get(analysis.base_name if analysis else "", {}).get(name)
    if coverage is None or coverage not in values:
        return cells
    exact = zip(cells, values[name], values[coverage], strict=True)
    return [
        f"≥ {cell}" if value is not None and is_lower_bound(covered) else cell
        for cell, value, covered in exact
    ]
