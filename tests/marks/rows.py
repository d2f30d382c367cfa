"""Helpers that count and sum result rows to compute the expected marks of a chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean
from typing import Any

from hta_sql.charts.drawing.palette import named_parts
from hta_sql.library.chart_header import chart_of
from hta_sql.library.objects import load_library

Rows = list[dict[str, Any]]

Expected = tuple[dict[str, list[float]], dict[str, int]]
"""Sorted values of each drawn column, and number of visible marks of each kind."""

MS, US = 1e6, 1e3


def parts_of(analysis: str) -> dict[str, tuple[str, str]]:
    """Return the parts that a chart declares: column ─▶ label and color."""
    return named_parts(chart_of(load_library().find(analysis))["parts"])


def longest(rows: Rows, column: str, top: int) -> Rows:
    """Return the ``top`` rows with the highest values in a column."""
    return sorted(rows, key=lambda row: -row[column])[:top]


def by(rows: Rows, *columns: str) -> dict[Any, Rows]:
    """Group rows by the values in the given columns."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def column(rows: Iterable[dict[str, Any]], name: str, unit: float = 1) -> list[float]:
    """Return the sorted values of a column, divided by a unit."""
    return sorted(row[name] / unit for row in rows)


def total(rows: Rows, name: str) -> float:
    """Return the sum of a column."""
    return float(sum(row[name] for row in rows))


def apart(rows: Rows, low: str, high: str, widest: str) -> int:
    """Count rows whose interval is visible on an axis that ends at the maximum of ``widest``."""
    least = 1e-4 * max(row[widest] for row in rows)
    return sum(row[high] - row[low] > least for row in rows)


def seen(values: Iterable[float]) -> int:
    """Count the values whose bars are visible."""
    return sum(value != 0 for value in values)


def boxed(rows: Rows, pairs: dict[str, str]) -> Expected:
    """Return the expected box plot of each row: a line, one or two boxes, and a symbol."""
    boxes = len(rows) + apart(rows, pairs["p25"], pairs["p75"], pairs["max"])
    lines = apart(rows, pairs["min"], pairs["max"], pairs["max"])
    marks = {"rule": lines, "rect": boxes, "symbol": len(rows)}
    return {drawn: column(rows, name) for drawn, name in pairs.items()}, marks


def mean_steps(rows: Rows, parts: dict[str, tuple[str, str]]) -> Expected:
    """Expect the parts of each rank's mean step, as shares and as times."""
    means = {
        part: [mean(row[part] or 0 for row in own) for own in by(rows, "rank").values()]
        for part in parts
    }
    known = [part for part, own in means.items() if any(own)]
    values = {parts[part][0]: column(rows, part, MS) for part in known}
    return values, {"rect": 2 * sum(value > 0 for own in means.values() for value in own)}
