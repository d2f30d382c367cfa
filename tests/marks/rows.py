"""Rows of results, as what a chart has to show of them is counted and summed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Rows = list[dict[str, Any]]

Expected = tuple[dict[str, list[float]], dict[str, int]]
"""Drawn column ─▶ its values, in order of size; kind of mark ─▶ how many are seen."""

MS, US = 1e6, 1e3


def longest(rows: Rows, column: str, top: int) -> Rows:
    """The rows with the highest values."""
    return sorted(rows, key=lambda row: -row[column])[:top]


def by(rows: Rows, *columns: str) -> dict[Any, Rows]:
    """Rows by what tells them apart."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def column(rows: Iterable[dict[str, Any]], name: str, unit: float = 1) -> list[float]:
    """The values of a column, in order of size."""
    return sorted(row[name] / unit for row in rows)


def total(rows: Rows, name: str) -> float:
    """The sum of a column."""
    return float(sum(row[name] for row in rows))


def apart(rows: Rows, low: str, high: str, widest: str) -> int:
    """Lines and boxes that have a length on an axis up to the highest of some values."""
    least = 1e-4 * max(row[widest] for row in rows)
    return sum(row[high] - row[low] > least for row in rows)


def seen(values: Iterable[float]) -> int:
    """Bars that have a length."""
    return sum(value != 0 for value in values)


def boxed(rows: Rows, pairs: dict[str, str]) -> Expected:
    """Box plots: a line, a box that is two where its quartiles differ, and a symbol for each row."""
    boxes = len(rows) + apart(rows, pairs["p25"], pairs["p75"], pairs["max"])
    lines = apart(rows, pairs["min"], pairs["max"], pairs["max"])
    marks = {"rule": lines, "rect": boxes, "symbol": len(rows)}
    return {drawn: column(rows, name) for drawn, name in pairs.items()}, marks
