"""Flame graphs of call stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import HOST_COLORS, ON_COLOR
from hta_sql.charts.drawing.style import (
    RUNS,
    by_run,
    colors,
    data,
    duration_unit,
    headed,
    nothing,
    present,
    readable,
    subtitled,
    tooltips,
)
from hta_sql.library.vendors import call_name

_IN_ORDER = ("Python", "built in", "module", "operator", "runtime call", "annotation")

KINDS = {name: HOST_COLORS[name] for name in _IN_ORDER}
"""Kind of a frame in a flame graph ─▶ color."""

_KIND_OF = (
    ("module", re.compile(r"nn\.Module: ")),
    ("built in", re.compile(r"<built-in")),
    ("Python", re.compile(r".*\(\d+\): ")),
    ("runtime call", call_name()),
    ("operator", re.compile(r"[\w.]+::")),
    ("annotation", re.compile("")),
)

RECTANGLES = 600
"""Maximum number of rectangles in one chart, widest first; a page of 200 kB has about 900."""

SMALLEST_NAMED = 0.015
"""Minimum relative width of a rectangle with a name."""

WIDE, ROW = 840, 14
"""Width of a flame graph, and height of a level [pixels]."""


@figure
def folded_stacks(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw flame graphs with the outermost calls on top: one of device time, one of host time.

    Ranks are summed. The widest rectangles are drawn.
    """
    known = table[table["stack"].notna()]
    runs, more = by_run(known)
    sides = [side for side in ("device", "host") if (known[f"{side}_ns"] > 0).any()]
    title = "Flame graph: who calls what, and for how long"
    if not sides:
        return nothing(title, "No host event took any time.")
    room = RECTANGLES // (len(sides) * min(len(runs), RUNS))
    panels = [_flame(own, side, run, room) for run, own in runs for side in sides]
    notes = (
        "Width: time in a call and in all that it calls, on all ranks; the largest first.",
        "Device: time of what was launched there, also where it ran side by side.",
        *more,
    )
    return alt.vconcat(*panels, title=headed(title, *notes))


def _flame(table: pd.DataFrame, side: str, run: str, room: int) -> alt.LayerChart | alt.FacetChart:
    top = _tree(zip(table["stack"], table[f"{side}_ns"], strict=True))
    cells = sorted(_cells(top), key=lambda cell: -cell["ns"])[:room]
    rows = readable(pd.DataFrame(cells))
    size, unit = duration_unit(float(top.ns))
    for column, ns in (("time", size), ("share", top.ns)):
        rows[column] = rows["ns"] / ns
    rows["x"], rows["x2"] = rows["at"] / top.ns, (rows["at"] + rows["ns"]) / top.ns
    rows["part"], rows["y2"] = rows["name"].map(_kind), rows["level"] + 1
    depth = int(rows["level"].max()) + 1
    x = alt.X(
        "x:Q", title=None, axis=alt.Axis(format="%", grid=False), scale=alt.Scale(domain=[0, 1])
    )
    y = alt.Y("level:Q", axis=None, scale=alt.Scale(domain=[depth, 0], nice=False))
    tooltip = {
        "name": "Call",
        "time:,.3f": f"Time [{unit}]",
        "share:.2%": f"of the {side} time",
    }
    columns = ["name", "part", "time", "share", "x", "x2", "level", "y2"]
    base = alt.Chart(data(rows[columns]))
    boxes = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        x=x,
        x2="x2:Q",
        y=y,
        y2="y2:Q",
        color=colors(present(KINDS, rows["part"]), "Call of"),
        tooltip=tooltips(tooltip),
    )
    # The name is cut to the width of its rectangle at the displayed size.
    width = "item.mark.group.width * datum.share"
    words = (
        base.transform_filter(f"datum.share > {SMALLEST_NAMED}")
        .mark_text(
            align="left",
            baseline="top",
            dx=2,
            dy=2,
            color=ON_COLOR,
            fontSize=alt.expr(f"{width} < 24 ? 0 : 10"),
            limit=alt.expr(f"max(1, {width} - 3)"),
        )
        .encode(x=x, y=y, text="name:N")
    )
    title = subtitled(f"{side} time" + (f", run {run}" if run else ""))
    return alt.layer(boxes, words).properties(title=title, width=WIDE, height=depth * ROW)


class _Call:
    """A call tree node with total time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ns = 0
        self.inside: dict[str, _Call] = {}


def _tree(stacks: Iterator[tuple[str, int]]) -> _Call:
    top = _Call("")
    for stack, ns in stacks:
        call = top
        call.ns += int(ns)
        for name in stack.split(";"):
            call = call.inside.setdefault(name, _Call(name))
            call.ns += int(ns)
    return top


def _cells(top: _Call) -> Iterator[dict[str, Any]]:
    """Yield the rectangles: children side by side below their parent, longest first."""
    waiting = [(top, 0, 0)]
    while waiting:
        call, at, level = waiting.pop()
        for inner in sorted(call.inside.values(), key=lambda inner: (-inner.ns, inner.name)):
            if inner.ns > 0:
                yield {"name": inner.name, "at": at, "ns": inner.ns, "level": level}
                waiting.append((inner, at, level + 1))
                at += inner.ns


def _kind(name: str) -> str:
    return next(kind for kind, pattern in _KIND_OF if pattern.match(name))
