"""Columns as people read them: ``exposed_wait_ns`` is called Exposed wait (ms), and its cells are in ms."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hta_sql.charts.style import duration_unit, size_unit
from hta_sql.results.cells import NULL, cell_text, column_unit
from hta_sql.words import plain_number, printable

if TYPE_CHECKING:
    from hta_sql.library.objects import SqlObject

_ACRONYMS = {
    word.lower(): word
    for word in (
        *("AMD", "API", "CPU", "CUDA", "CUPTI", "FLOPs", "GPU", "HIP", "ID", "MFU", "NCCL", "P2P"),
        *("SM", "SMs", "SQL", "TFLOPS", "URL"),
    )
}
_WORDS = {"dur": "duration", "ts": "start", "op": "operation", "ops": "operations", "std": "std."}
_STATES = frozenset(
    {
        *("backward", "found", "full", "held", "judged", "known", "last", "late", "launching"),
        *("lost", "matched", "median", "out", "repaired", "running", "sized", "slow", "suspect"),
        *("timed", "unlinked", "usual", "zero"),
    }
)
"""What comes before ``_count`` and has no plural."""
_SUFFIXES = ("_ns", "_us", "_pct", "_bytes", "_gbps", "_count")
_UNITS = {"%": "%", "GB/s": "GB/s", "us": "µs"}
_SMALL = 0.001
_TOO_LONG_NS = 30 * 86_400 * 10**9
"""Beyond a month a number of nanoseconds is a point in time, and stays one."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|kB|MB|GB|TB)(?!\w))")


def sentence(text: str) -> str:
    """Write a sentence with names out of traces as markup; no line ends between a number and its unit."""
    return _BEFORE_UNIT.sub("&nbsp;", html.escape(printable(text)))


def column_words(name: str, unit: str | None) -> str:
    """Write the name of a column in words, without its unit."""
    suffix = next((s for s in _SUFFIXES if name.endswith(s) and len(name) > len(s)), "")
    words = [_WORDS.get(word, word) for word in name.removesuffix(suffix).split("_")]
    if suffix == "_count" and unit in {"count", None}:
        last = words[-1]
        words[-1:] = [last, "count"] if last in _STATES else [_plural(last)]
    text = " ".join(_ACRONYMS.get(word, word) for word in words if word)
    return text[:1].upper() + text[1:]


def _plural(noun: str) -> str:
    if noun[-1:] == "s" and noun != "process":
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def column_texts(
    name: str, values: Sequence[Any], analysis: SqlObject | None
) -> tuple[str, list[str]]:
    """Write a column: its heading, with one unit for all of it, and its cells."""
    unit = column_unit(name, analysis)
    words = column_words(name, unit)
    numbers = [abs(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]
    most = max(numbers, default=0)
    scales: dict[str, Callable[[float], tuple[float, str]]] = {
        "ns": duration_unit,
        "bytes": size_unit,
    }
    scale = scales.get(unit or "")
    if scale and numbers and not (unit == "ns" and most >= _TOO_LONG_NS):
        size, shown = scale(most)
        return f"{words} ({shown})", [_scaled(value, size) for value in values]
    cells = [cell_text(value, unit if unit != "ns" else "id") for value in values]
    shown = "ns" if unit == "ns" and numbers else _UNITS.get(unit or "", "")
    return f"{words} ({shown})" if shown else words, cells


def _scaled(value: Any, size: float) -> str:
    if value is None:
        return NULL
    if size == 1:
        return plain_number(value)
    if not value:
        return "0"
    number = value / size
    return f"{number:,.3f}" if abs(number) >= _SMALL else f"{number:.2g}"
