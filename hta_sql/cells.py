"""Values as people read them: 134.511 ms instead of 134511000, nothing that moves a cursor."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from hta_sql.library import SqlObject, load_library

NULL = "–"  # noqa: RUF001 - an en dash, so that it is not read as a minus
CUT = "…"

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_LONGEST_TIME_NS = 30 * 86_400 * 1_000_000_000
"""Beyond a month a number of nanoseconds is a point in time, and stays a number."""
_SUFFIX_UNITS = {"_ns": "ns", "_pct": "%", "_bytes": "bytes", "_gbps": "GB/s", "_count": "count"}
_ID = "id"


def column_unit(name: str, analysis: SqlObject | None) -> str | None:
    """Find the unit of a column: as the analysis or the tables document it, else by its suffix."""
    if analysis:
        for column in analysis.columns:
            if column.name == name:
                return column.unit or _ID
    for suffix, unit in _SUFFIX_UNITS.items():
        if name.endswith(suffix):
            return unit
    if name.endswith("_id"):
        return _ID
    return _table_units().get(name)


@cache
def _table_units() -> dict[str, str]:
    tables = load_library().tables
    return {column.name: column.unit or _ID for table in tables for column in table.columns}


def cell_text(value: Any, unit: str | None = None) -> str:
    """Write one value for people, on one line and without control characters.

    A number without a unit is an id (rank, stream, event_id) and gets no thousands separators
    where its column is known; a number of unknown meaning gets them.
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return number_text(value, unit)
    if isinstance(value, (list, dict, tuple)):
        return printable(json.dumps(value, default=str, ensure_ascii=False))
    if isinstance(value, bytes):
        return value.hex()
    return printable(str(value))


def number_text(value: float | Decimal, unit: str | None) -> str:
    """Write a number in its unit."""
    if not math.isfinite(value):
        return str(value)
    writer = _WRITERS.get(unit or "")
    return writer(value) if writer else plain_number(value)


def plain_number(value: float | Decimal) -> str:
    """Write a number with thousands separators; a fraction with so many digits as say something."""
    if value == int(value) and abs(value) < 2**63 and not isinstance(value, float):
        return f"{int(value):,}"
    if value == 0 or 0.001 <= abs(value) < 10**12:
        return f"{value:,.3f}"
    return f"{float(value):.4g}"


def time_text(ns: float | Decimal) -> str:
    """Write nanoseconds in the largest unit that leaves a digit before the point."""
    if abs(ns) >= _LONGEST_TIME_NS:
        return f"{int(ns)} ns"
    for factor, unit in _TIMES:
        if abs(ns) >= factor:
            return f"{float(ns) / factor:,.3f} {unit}"
    return f"{int(ns)} ns" if ns == int(ns) else f"{float(ns):.3g} ns"


def size_text(size: float | Decimal) -> str:
    """Write bytes; a GB is 1e9 of them."""
    for factor, unit in _SIZES:
        if abs(size) >= factor:
            return f"{float(size) / factor:,.3f} {unit}"
    return f"{int(size)} B" if size == int(size) else f"{float(size):.3g} B"


_WRITERS: dict[str, Callable[[float | Decimal], str]] = {
    "ns": time_text,
    "bytes": size_text,
    "%": lambda value: f"{value:.2f}",
    "GB/s": lambda value: f"{value:,.2f}",
    _ID: lambda value: str(value) if not isinstance(value, float) else plain_number(value),
}


def printable(text: str) -> str:
    r"""Write what a terminal would act on as an escape: ``\x1b`` for ESC, ``\n`` for a newline.

    Covers control and format characters (text direction among them), so that a kernel's name
    can neither colour, move nor hide anything.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def cut_middle(text: str, width: int) -> str:
    """Shorten a text to a width; what tells names apart stands at both ends."""
    if len(text) <= width:
        return text
    if width <= 1:
        return CUT[:width]
    tail = (width - 1) // 2
    head = width - 1 - tail
    return text[:head] + CUT + text[len(text) - tail :]
