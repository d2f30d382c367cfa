"""Flame graphs of call stacks."""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.flames import flames, widest
from hta_sql.charts.drawing.palette import HOST_COLORS
from hta_sql.charts.drawing.style import RUNS, by_run, colors, headed, nothing, present, subtitled
from hta_sql.library.vendors import call_name
from hta_sql.text import duration_unit

_IN_ORDER = ("Python", "built-in", "module", "operator", "runtime call", "annotation")

KINDS = {name: HOST_COLORS[name] for name in _IN_ORDER}
"""Kind of a frame in a flame graph ─▶ color."""

_KIND_OF = (
    ("module", re.compile(r"nn\.Module: ")),
    ("built-in", re.compile(r"<built-in")),
    ("Python", re.compile(r".*\(\d+\): ")),
    ("runtime call", call_name()),
    ("operator", re.compile(r"[\w.]+::")),
    ("annotation", re.compile("")),
)

RECTANGLES = 600
"""Maximum number of rectangles in one chart, widest first; a page of 200 kB has about 900."""


@figure
def folded_stacks(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw flame graphs with the outermost calls on top: one of device time, one of host time.

    Ranks are summed. The widest rectangles are drawn.
    """
    known = table[table["stack"].notna()]
    runs, more = by_run(known)
    sides = [side for side in ("device", "host") if (known[f"{side}_ns"] > 0).any()]
    title = "Flame graph of the call stacks"
    if not sides:
        return nothing(title, "No host event took any time.")
    room = RECTANGLES // (len(sides) * min(len(runs), RUNS))
    panels = [_flame(own, side, run, room) for run, own in runs for side in sides]
    notes = (
        "Width: total time of a call, including its callees, on all ranks; the longest first.",
        "Device: sum of the operations launched there, including concurrent ones.",
        *more,
    )
    return alt.vconcat(*panels, title=headed(title, *notes))


def _flame(table: pd.DataFrame, side: str, run: str, room: int) -> Any:
    rows = widest(zip(table["stack"], table[f"{side}_ns"], strict=True), room)
    size, unit = duration_unit(float(table[f"{side}_ns"].sum()))
    rows = rows.assign(time=rows["size"] / size, part=rows["name"].map(_kind))
    tooltip = {
        "name": "Call",
        "time:,.3f": f"Time [{unit}]",
        "share:.2%": f"Share of {side} time",
    }
    chart = flames(rows, tooltip, colors(present(KINDS, rows["part"]), "Kind of call"))
    return chart.properties(title=subtitled(f"{side} time" + (f", run {run}" if run else "")))


def _kind(name: str) -> str:
    return next(kind for kind, pattern in _KIND_OF if pattern.match(name))
