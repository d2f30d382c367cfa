"""Flame graphs: frames of stacks as rectangles, the outermost on top."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.palette import ON_COLOR
from hta_sql.charts.drawing.style import data, readable, tooltips

SMALLEST_NAMED = 0.015
"""Minimum relative width of a rectangle with a name."""

WIDE, ROW = 840, 14
"""Width of a flame graph, and height of a level [pixels]."""


def widest(stacks: Iterable[tuple[str, int]], most: int) -> pd.DataFrame:
    """Return the widest rectangles of a flame graph.

    Args:
        stacks: Stacks with their sizes; frames are separated by semicolons, the outermost first.
        most: Maximum number of rectangles.

    Returns:
        Columns ``name``, ``size``, ``share`` of the sum, ``x``, ``x2``, ``level`` and ``y2``.
    """
    top = _tree(stacks)
    cells = sorted(_cells(top), key=lambda cell: -cell["size"])[:most]
    rows = readable(pd.DataFrame(cells, columns=["name", "at", "size", "level"]))
    return rows.assign(
        share=rows["size"] / top.size,
        x=rows["at"] / top.size,
        x2=(rows["at"] + rows["size"]) / top.size,
        y2=rows["level"] + 1,
    )


def flames(rows: pd.DataFrame, tooltip: dict[str, str], color: alt.Color) -> Any:
    """Draw a flame graph.

    Args:
        rows: Rectangles from :func:`widest`, with a column ``part`` for the color.
        tooltip: Tooltip of a rectangle.
        color: Color encoding of ``part``.
    """
    depth = int(rows["level"].max()) + 1
    x = alt.X(
        "x:Q", title=None, axis=alt.Axis(format="%", grid=False), scale=alt.Scale(domain=[0, 1])
    )
    y = alt.Y("level:Q", axis=None, scale=alt.Scale(domain=[depth, 0], nice=False))
    own = [name.partition(":")[0] for name in tooltip]
    columns = list(dict.fromkeys(["name", "part", *own, "share", "x", "x2", "level", "y2"]))
    base = Chart(data(rows[columns]))
    boxes = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q", color=color, tooltip=tooltips(tooltip)
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
    return alt.layer(boxes, words).properties(width=WIDE, height=depth * ROW)


class _Node:
    """A frame with the size of all stacks through it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size = 0
        self.inside: dict[str, _Node] = {}


def _tree(stacks: Iterable[tuple[str, int]]) -> _Node:
    top = _Node("")
    for stack, ns in stacks:
        node = top
        node.size += int(ns)
        for name in stack.split(";"):
            node = node.inside.setdefault(name, _Node(name))
            node.size += int(ns)
    return top


def _cells(top: _Node) -> Iterator[dict[str, Any]]:
    """Yield the rectangles: children side by side below their parent, longest first."""
    waiting = [(top, 0, 0)]
    while waiting:
        node, at, level = waiting.pop()
        for inner in sorted(node.inside.values(), key=lambda inner: (-inner.size, inner.name)):
            if inner.size > 0:
                yield {"name": inner.name, "at": at, "size": inner.size, "level": level}
                waiting.append((inner, at, level + 1))
                at += inner.size
