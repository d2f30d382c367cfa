"""Readable headings and units of columns.

``exposed_wait_ns`` is shown as Exposed wait (ms), and its cells are in ms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from hta_sql.library.objects import SqlObject
from hta_sql.results.cells import NULL, cell_text, column_unit
from hta_sql.text import duration_unit, plain_number, printable, size_unit

_ACRONYMS = {
    word.lower(): word
    for word in (
        *("AMD", "API", "CPU", "CUDA", "CUPTI", "FLOPs", "GPU", "HIP", "ID", "MFU", "NCCL", "P2P"),
        *("KV", "SM", "SMs", "SQL", "TFLOPS", "URL"),
    )
}
_WORDS = {
    "dur": "duration",
    "ts": "start",
    "op": "operation",
    "ops": "operations",
    "std": "std.",
    "pg": "process group",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "tbps": "TB/s",
    "z": "z-score",
    "1us": "1 µs",
    "10us": "10 µs",
    "100us": "100 µs",
    "1ms": "1 ms",
    "10ms": "10 ms",
}
_ROLES = {"ns": "time", "bytes": "memory"}
"""Unit ─▶ word for the quantity in a heading, if the unit is not shown: no value is known."""
_STATES = frozenset(
    {
        *("backward", "found", "full", "held", "judged", "known", "last", "late", "launching"),
        *("lost", "matched", "median", "out", "repaired", "running", "sized", "slow", "suspect"),
        *("timed", "unlinked", "usual", "zero"),
    }
)
"""Words before ``_count`` that are not nouns, and so have no plural."""
_SUFFIXES = ("_ns", "_us", "_pct", "_bytes", "_gbps", "_count")
_UNITS = {"%": "%", "GB/s": "GB/s", "us": "µs"}
_SMALL = 0.0005
_READ = 0.001
"""Smallest value that is not shown as 0.000, with three decimals."""
_MOST = 0.75
"""Share of a column's nonzero values that must be readable in the chosen unit."""
_WIDEST = 100_000
"""Maximum of the largest value in a column, in the column's unit."""
_TOO_LONG_NS = 30 * 86_400 * 10**9
"""A number of nanoseconds above a month is a point in time, and is not converted."""
_EPOCH_NS = 10**18
"""A number of nanoseconds from here on is a Unix time after 2001, and is shown as a date."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|kB|MB|GB|TB)(?!\w))")


def sentence(text: str) -> Markup:
    """Escape a sentence with names from traces; keep each number and its unit on one line."""
    return Markup("&nbsp;").join(_BEFORE_UNIT.split(printable(text)))


def column_words(name: str, unit: str | None) -> str:
    """Return the name of a column in words, without its unit."""
    suffix = next((s for s in _SUFFIXES if name.endswith(s) and len(name) > len(s)), "")
    words = [_WORDS.get(word, word) for word in name.removesuffix(suffix).split("_")]
    if suffix == "_count" and unit in {"count", None}:
        last = words[-1]
        is_plural = "per" not in words and last not in _STATES
        words[-1:] = (
            [_plural(last)] if is_plural else [last, *([] if "per" in words else ["count"])]
        )
    text = " ".join(_ACRONYMS.get(word, word) for word in words if word)
    return text[:1].upper() + text[1:]


def _plural(noun: str) -> str:
    if noun[-1:] == "s" and noun != "process":
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def headings(table: pa.Table, analysis: SqlObject | None) -> dict[str, str]:
    """Return distinct headings for the columns of a table, without units."""
    units = {name: column_unit(name, analysis) for name in table.column_names}
    words = {name: column_words(name, unit) for name, unit in units.items()}
    alike: dict[str, list[str]] = {}
    for name, text in words.items():
        alike.setdefault(text.lower().removesuffix("s"), []).append(name)
    for names in alike.values():
        # A count is marked as such if another column has the same heading without a unit.
        others = [n for n in names if units[n] not in _ROLES and units[n] not in _UNITS]
        for name in names if len(names) > 1 else ():
            role = _ROLES.get(units[name] or "")
            is_known = table.column(name).null_count < table.num_rows
            if role and not is_known and role not in words[name].lower():
                words[name] += f" ({role})"
            elif units[name] == "count" and others != [name]:
                words[name] = column_words(name.removesuffix("_count"), None) + " count"
    return words


def column_texts(
    name: str, values: Sequence[Any], analysis: SqlObject | None, words: str = ""
) -> tuple[str, list[str]]:
    """Format a column: its heading with a common unit, and its cells.

    Args:
        name: Name of the column.
        values: Values of the column.
        analysis: Analysis of the column, which defines its unit.
        words: Heading of the column in the table; default: derived from the name alone.
    """
    unit = column_unit(name, analysis)
    words = words or column_words(name, unit)
    numbers = [abs(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]
    most = max(numbers, default=0)
    scales: dict[str, Callable[[float], tuple[float, str]]] = {
        "ns": duration_unit,
        "bytes": size_unit,
    }
    scale = scales.get(unit or "")
    if scale and numbers and not (unit == "ns" and most >= _TOO_LONG_NS):
        size, shown = _fitting(numbers, scale)
        return _with_unit(words, shown), [_scaled(value, size) for value in values]
    if unit == "ns" and numbers and min(numbers) >= _EPOCH_NS:
        return f"{words} (UTC)", [_date_text(value) for value in values]
    cells = [cell_text(value, unit if unit != "ns" else "id") for value in values]
    return _with_unit(
        words, "ns" if unit == "ns" and numbers else _UNITS.get(unit or "", "")
    ), cells


def _with_unit(words: str, unit: str) -> str:
    """Append the unit to a heading that does not already end with it."""
    return f"{words} ({unit})" if unit and words.lower().split()[-1:] != [unit.lower()] else words


def _fitting(
    numbers: Sequence[float], scale: Callable[[float], tuple[float, str]]
) -> tuple[float, str]:
    """Return the unit in which most numbers show a nonzero digit and the largest is not long."""
    there = sorted(number for number in numbers if number)
    if not there:
        return scale(0)
    low = there[int((1 - _MOST) * len(there))]
    sizes = [scale(there[-1])]
    while low < _READ * sizes[-1][0] and sizes[-1][0] > 1:
        smaller = scale(sizes[-1][0] / 1000)
        if there[-1] > _WIDEST * smaller[0]:
            break
        sizes.append(smaller)
    return sizes[-1]


def _date_text(value: Any) -> str:
    """Format a Unix time [ns] as a date and time to the microsecond, UTC."""
    if value is None:
        return NULL
    moment = datetime(1970, 1, 1) + timedelta(microseconds=int(value) // 1000)  # noqa: DTZ001 - UTC
    return moment.isoformat(" ", "microseconds")


def _scaled(value: Any, size: float) -> str:
    if value is None:
        return NULL
    if size == 1:
        return plain_number(value)
    if not value:
        return "0"
    number = value / size
    if abs(number) >= _SMALL:
        return f"{number:,.3f}"
    return "<0.001" if number > 0 else ">-0.001"
