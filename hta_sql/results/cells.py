"""Formats values for people, by the unit of their column: 134.511 ms instead of 134511000."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from hta_sql.library.objects import SqlObject, load_library
from hta_sql.text import plain_number, printable, size_text, time_text

NULL = "–"  # noqa: RUF001 - an en dash cannot be mistaken for a minus

_SUFFIX_UNITS = {"_ns": "ns", "_pct": "%", "_bytes": "bytes", "_gbps": "GB/s", "_count": "count"}
_AGGREGATE = re.compile(r"(?:sum|avg|mean|median|min|max)\((?:\w+\.)?(\w+)\)$")
_ID = "id"
_DIMENSIONLESS = "1"
_UNIT_COLUMN = "unit"


def column_unit(name: str, analysis: SqlObject | None) -> str | None:
    """Return a column's unit: documented by the analysis or a table, or implied by its suffix."""
    if name.endswith("_offset"):
        return _ID  # an offset in a file: every digit matters
    if analysis:
        for column in analysis.columns:
            if column.name == name:
                return column.unit or _ID
    for suffix, unit in _SUFFIX_UNITS.items():
        if name.endswith(suffix):
            return unit
    if name.endswith("_id"):
        return _ID
    aggregate = _AGGREGATE.match(name)
    return _table_units().get(aggregate.group(1) if aggregate else name)


def units_of_rows(
    name: str, analysis: SqlObject | None, values: Mapping[str, Sequence[Any]]
) -> Sequence[str | None]:
    """Return the unit of each value of a column.

    In an analysis with a column ``unit``, each row states the unit of its dimensionless figures.

    Args:
        name: The column.
        analysis: The analysis of the rows.
        values: Column ─▶ values, for all columns of the result.
    """
    unit = column_unit(name, analysis)
    if unit == _DIMENSIONLESS and _UNIT_COLUMN in values:
        return values[_UNIT_COLUMN]
    return [unit] * len(values[name])


@cache
def _table_units() -> dict[str, str]:
    tables = load_library().tables
    return {column.name: column.unit or _ID for table in tables for column in table.columns}


def cell_text(value: Any, unit: str | None = None) -> str:
    """Format one value on one line, without control characters.

    In a documented column, a number without a unit is an id (rank, stream, event_id), and gets no
    thousands separators. In an undocumented column, numbers get them.
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (int, float)):
        return number_text(value, unit)
    if isinstance(value, (list, dict, tuple)):
        return printable(json.dumps(value, default=str, ensure_ascii=False))
    if isinstance(value, bytes):
        return value.hex()
    return printable(str(value))


def number_text(value: float, unit: str | None) -> str:
    """Format a number in its unit."""
    if not math.isfinite(value):
        return str(value)
    writer = _WRITERS.get(unit or "")
    return writer(value) if writer else plain_number(value)


_WRITERS: dict[str, Callable[[float], str]] = {
    "ns": time_text,
    "bytes": size_text,
    "%": lambda value: f"{value:.2f}",
    "GB/s": lambda value: f"{value:,.2f}",
    _ID: lambda value: str(value) if not isinstance(value, float) else plain_number(value),
}
