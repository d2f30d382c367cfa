"""Reads and checks the chart that an analysis declares in its header.

::

    -- Chart:
    --   mark = "bars"
    --   title = "The longest copies"
    --   name = "name"
    --   value = "copy_ns"
    --   measure = "Time"

The lines are TOML. :data:`MARKS` lists the keys of each mark, docs/your_own_analyses.md describes
them. :mod:`hta_sql.charts.declared` draws the chart.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from hta_sql.errors import LibraryError
from hta_sql.library.header import CHART
from hta_sql.library.objects import SqlObject

Declaration = dict[str, Any]
"""Keys of a chart and their values."""

TEXTS = {
    *("title", "empty", "unnamed", "whole", "legend", "measure", "color", "mark"),
    *("mean", "combine", "statistic"),
}
"""Keys with a text."""

COLUMNS = {"reason", "known", "name", "value", "part", "total", "from", "to"}
"""Keys with a column, or with several of which the first known value counts: ``frame or name``."""

TABLES = {"parts", "panels", "where", "tooltip"}
"""Keys with a table. Its keys are columns; of panels, titles; of parts, the values of ``part``."""

_ALWAYS = {"mark", "title"}
_ANYWHERE = {"notes", "empty", "reason", "known", "where"}

MARKS: dict[str, tuple[set[str], set[str]]] = {
    "stack": (
        {"legend", "whole"},
        {"bar", "value", "part", "parts", "total", "rest", "mean", "shares"},
    ),
    "bars": (
        {"name", "measure"},
        {
            *("value", "part", "parts", "panels", "separate"),
            *("legend", "color", "tooltip", "unnamed", "top"),
        },
    ),
    "ranks": (
        {"value", "measure"},
        {"bar", "part", "parts", "above", "legend", "color", "tooltip"},
    ),
    "matrix": ({"from", "to", "value", "measure"}, {"combine", "color"}),
    "line": ({"bar", "value", "measure"}, {"color"}),
    "box": ({"bar", "statistic", "measure"}, {"color"}),
}
"""Mark ─▶ keys that it requires, and other keys that it takes."""

ONE_OF = {"stack": ("parts", "part"), "bars": ("value", "parts", "panels")}
"""Mark ─▶ keys of which it requires one."""

TOGETHER = {"part": "value", "rest": "total", "total": "rest"}
"""Key ─▶ key that it requires."""

WORDS = {"mean": ("step", "rank"), "combine": ("sum", "max")}
"""Key ─▶ its possible values."""

NEEDED = {"line": ("run", "rank", "ts", "dur")}
"""Mark ─▶ columns that the analysis needs; every chart needs ``run``."""

STATISTICS = ("min", "p25", "p50", "p75", "max")
"""Prefixes of the columns that a box needs: ``min_gbps`` for the statistic ``gbps``."""


def has_chart(about: SqlObject) -> bool:
    """Return whether an analysis declares a chart."""
    return CHART in about.facts


def chart_of(about: SqlObject) -> Declaration:
    """Return the chart that an analysis declares.

    Raises:
        LibraryError: The declaration is malformed, or names an unknown column.
    """
    for problem in chart_problems(about):
        raise LibraryError(f"{about.path}:1: {problem}.")
    return tomllib.loads(about.facts[CHART])


def chart_problems(about: SqlObject) -> Iterator[str]:
    """Yield the problems of a declared chart; none if the header declares no chart."""
    if CHART not in about.facts:
        return
    try:
        chart = tomllib.loads(about.facts[CHART])
    except tomllib.TOMLDecodeError as error:
        yield f"the lines below '-- Chart:' are not TOML: {error}"
        return
    mark = str(chart.get("mark"))
    if mark not in MARKS:
        yield f"Chart has the mark {mark!r}; write one of {', '.join(MARKS)}"
        return
    required, others = (_ALWAYS | MARKS[mark][0], _ANYWHERE | MARKS[mark][1])
    missing = sorted(required - chart.keys())
    missing += sorted({TOGETHER[key] for key in TOGETHER.keys() & chart.keys()} - chart.keys())
    if mark in ONE_OF and chart.keys().isdisjoint(ONE_OF[mark]):
        missing.append(" or ".join(ONE_OF[mark]))
    if missing:
        yield f"Chart has no {missing[0]}, which the mark {mark} requires"
    elif unknown := sorted(chart.keys() - required - others):
        taken = ", ".join(sorted(required | others))
        yield f"Chart has the key {unknown[0]}; the mark {mark} takes {taken}"
    elif wrong := [key for key, value in chart.items() if not _fits(key, value)]:
        yield f"Chart has {wrong[0]} = {chart[wrong[0]]!r}; expected: {_expected(wrong[0])}"
    else:
        known = {column.name for column in about.columns}
        for name in sorted(_columns(chart) - known):
            yield f"Chart names {name!r}, which is not a column of the analysis"


def _expected(key: str) -> str:
    """Describe the value that a key takes."""
    if key in WORDS:
        return " or ".join(WORDS[key])
    if key in TEXTS | COLUMNS:
        return "a text"
    if key in TABLES:
        return "a table of columns and labels"
    if key == "rest":
        return "a label, or [label, color]"
    others = {
        "top": "a whole number",
        "above": "a number",
        "shares": "a flag",
        "separate": "a flag",
    }
    return others.get(key, "a list of texts")


def _fits(key: str, value: Any) -> bool:
    """Return whether a value has the type that its key takes."""
    if key in WORDS:
        return value in WORDS[key]
    if key in TEXTS | COLUMNS:
        return isinstance(value, str)
    if key in TABLES:
        inner = {"parts": "rest", "panels": "parts", "tooltip": "title"}.get(key)
        return isinstance(value, dict) and all(not inner or _fits(inner, v) for v in value.values())
    if key == "rest":
        return isinstance(value, str) or (_fits("bar", value) and len(value) == 2)
    if key in ("top", "above", "shares", "separate"):
        return type(value) in {"top": (int,), "above": (int, float)}.get(key, (bool,))
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _columns(chart: Declaration) -> set[str]:
    """Return the columns that a declaration names or needs."""
    bar = chart.get("bar", ["rank"] if "bar" in MARKS[chart["mark"]][1] else [])
    named = [chart[key] for key in COLUMNS & chart.keys()] + bar
    tables = [chart.get("where", {}), chart.get("tooltip", {}), *chart.get("panels", {}).values()]
    tables += [] if "part" in chart else [chart.get("parts", {})]
    named += ["rank"] if chart.get("mean") == "rank" else []
    named += ["run", *NEEDED.get(chart["mark"], ()), *(name for table in tables for name in table)]
    if chart["mark"] == "box":
        named += [f"{statistic}_{chart['statistic']}" for statistic in STATISTICS]
    return {one for name in named for one in name.split(" or ")}
