"""Formats limits and values of a gate as text."""

from __future__ import annotations

from hta_sql.results.cells import cell_text

POINTS = "points"
"""Unit of a difference between percentages: 5 % ▸ 7 % is +2 points."""


def difference_text(difference: float | None, share: float | None, unit: str | None) -> str:
    """Format a difference as ``+5.00 %``, or as ``+5.00 points`` if the values are percentages."""
    if difference is None:
        return ""
    if unit == "%":
        return f"{difference:+.2f} {POINTS}"
    if share is None:
        return f"{'-' if difference < 0 else '+'}{number_text(abs(difference), unit)}"
    return f"{share:+.2f} %"


def limit_text(name: str, limit: float, unit: str | None) -> str:
    """Format a limit: ``at most +5 %``."""
    is_upper = name == "max" or name.startswith("max_increase")
    is_budget = name in ("max", "min")
    shown = f"{limit:g} %" if name.endswith("_pct") else number_text(limit, unit)
    if unit == "%" and not name.endswith("_pct"):
        shown = f"{limit:g} {'%' if is_budget else POINTS}"
    sign = "" if is_budget else "+" if is_upper else "-"
    return f"{'at most' if is_upper else 'at least'} {sign}{shown}"


def number_text(value: float | None, unit: str | None) -> str:
    """Format a number with its unit."""
    if value is None:
        return "none"
    if unit in (None, "1", "count"):
        return f"{value:,.6g}"
    text = cell_text(value, unit)
    return f"{text} {unit}" if unit in ("%", "GB/s") else text


def change_text(
    baseline: float | None, candidate: float | None, share: float | None, unit: str | None
) -> str:
    """Format a change: ``12.000 ms ▸ 12.600 ms (+5.00 %)``; for a budget, the candidate only."""
    if baseline is None or candidate is None:
        return number_text(candidate, unit)
    delta = difference_text(candidate - baseline, share, unit)
    return f"{number_text(baseline, unit)} ▸ {number_text(candidate, unit)} ({delta})"
