"""Figure of steps, annotations, host threads, idle time and device streams on one time axis."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.gaps import by_event
from hta_sql.charts.drawing.palette import (
    CLASS_COLORS,
    DARK,
    HOST_COLORS,
    IDLE_COLOR,
    ON_COLOR,
    STEP_COLOR,
)
from hta_sql.charts.drawing.style import (
    TIMELINE_WIDTH,
    by_run,
    colors,
    data,
    followed,
    headed,
    lane_names,
    marks,
    present,
    subtitled,
    zoom,
)
from hta_sql.charts.timeline.gpu import filled_to
from hta_sql.text import duration_text, duration_unit

MAX_LANES = 100

_LANE_HEIGHT = 18

_NAME_CHARACTERS = 80

_LABELED = 40
"""Minimum width of a bar with a label [pixels]."""

PARTS = {
    **{name: CLASS_COLORS[name] for name in ("computation", "communication", "memory")},
    "step": STEP_COLOR,
    **{name: HOST_COLORS[name] for name in ("annotation", "operator", "runtime call")},
    "GPU idle": IDLE_COLOR,
}
"""Kind of bar ─▶ color. Idle time has one color; its label names the host activity."""

_LANES = {
    "step": "steps",
    "annotation": "annotations",
    "host": "thread",
    "idle": "GPU idle: the host is in",
    "device": "stream",
}


@figure
def timeline(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw lanes of each rank: steps, annotations, host threads, GPU idle time, streams.

    Idle time is labeled with the host activity. Only the first 100 lanes are shown.
    """
    table, left_out = by_event(
        table.assign(event_id=table["event_id"].fillna(0)), "start_ns", "end_ns"
    )
    last = float(table["end_ns"].max()) if len(table) else 1.0
    runs, more = by_run(table)
    panels = [_panel(rows, last, run, at) for at, (run, rows) in enumerate(runs)]
    notes = [
        "A paler bar is less busy. The bar of idle GPU time shows the name of the host activity on the",
        "thread that launches next. Drag to move, Ctrl + wheel to zoom, double-click to see all.",
        *left_out,
        *more,
    ]
    lanes = table.groupby("run")[["rank", "lane", "lane_id"]].apply(
        lambda of: len(of.drop_duplicates())
    )
    if len(lanes) and lanes.max() > MAX_LANES:
        notes.append(f"The first {MAX_LANES} of {lanes.max():,} lanes.")
    title = headed("Timeline", *notes)
    return (
        panels[0].properties(title=title) if len(panels) == 1 else alt.vconcat(*panels, title=title)
    )


def _panel(
    table: pd.DataFrame, last: float, run: str, number: int
) -> alt.LayerChart | alt.FacetChart:
    size, unit = duration_unit(last)
    pixel = last / TIMELINE_WIDTH
    ends = table["end_ns"].clip(lower=table["start_ns"] + pixel)
    lasts = (ends - table["start_ns"]).clip(lower=1)
    drawn = table.assign(
        what=list(map(_what, table["lane"], table["lane_id"].astype(float))),
        part=table["part"].where(table["lane"] != "idle", "GPU idle"),
        name=table["name"].str.slice(0, _NAME_CHARACTERS),
        start=table["start_ns"] / size,
        end=ends / size,
        busy=(table["sum_ns"] / lasts).clip(0, 1),
        lasts=[duration_text(ns) for ns in table["end_ns"] - table["start_ns"]],
        why=table["part"].where(table["lane"] == "idle"),
        wide=lasts / pixel,
    )
    drawn["lane"] = lane_names(drawn, "rank", "what")
    names = list(dict.fromkeys(drawn["lane"]))[:MAX_LANES]
    drawn = drawn[drawn["lane"].isin(names)]
    y = alt.Y("lane:N", title=None, sort=names, axis=alt.Axis(labelLimit=220))
    layers: list[alt.Chart] = [_bars(drawn, y, unit).add_params(zoom(f"timeline_{number}", "x"))]
    if not run:  # Text marks can access the scale only in a single, unfaceted view
        layers.append(_labels(drawn[drawn["wide"] >= _LABELED], y))
    chart = alt.layer(*layers).properties(width=TIMELINE_WIDTH, height=alt.Step(_LANE_HEIGHT))
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart


def _bars(drawn: pd.DataFrame, y: alt.Y, unit: str) -> alt.Chart:
    tooltip = {
        "name": "Longest",
        "part": "Kind",
        "why": "Cause",
        "lane": "Lane",
        "start:,.6~f": f"Start [{unit}]",
        "lasts": "Lasts",
        "op_count:": "Events",
        "busy:.0%": "Filled",
    }
    below = alt.Legend(orient="bottom", columns=4)
    return marks(
        alt.MarkDef("bar", height=_LANE_HEIGHT - 4),
        drawn,
        tooltip,
        x=alt.X("start:Q", title=f"Time [{unit}]", scale=alt.Scale(zero=False, nice=False)),
        x2="end:Q",
        y=y,
        color=colors(present(PARTS, drawn["part"]), None, legend=below),
        opacity=filled_to("busy"),
    )


def _labels(drawn: pd.DataFrame, y: alt.Y) -> alt.Chart:
    """Draw labels inside bars, cut to the available width at the displayed size."""
    rows = drawn.rename(columns={"start": "left", "end": "right", "name": "label"})
    room = "scale('x', datum.right) - scale('x', datum.left)"
    dark = [part for part, color in PARTS.items() if color in DARK]
    look = alt.MarkDef(
        "text",
        align="left",
        dx=3,
        fontSize=alt.expr(f"{room} < 24 ? 0 : 10"),
        clip=True,
        limit=alt.expr(f"max(1, {room} - 5)"),
    )
    on_dark = alt.FieldOneOfPredicate("part", dark)
    held = data(followed(rows, ["lane", "part", "label", "left", "right"]))
    return Chart(held, mark=look).encode(
        x="left:Q",
        y=y,
        text="label:N",
        color=alt.condition(on_dark, alt.value("white"), alt.value(ON_COLOR)),
    )


def _what(lane: str, place: float) -> str:
    return _LANES[lane] + ("" if math.isnan(place) else f" {place:.0f}")
