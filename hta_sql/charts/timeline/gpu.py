"""Figure of the operations on each device stream over time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.gaps import by_event
from hta_sql.charts.drawing.palette import CLASS_COLORS
from hta_sql.charts.drawing.style import (
    TIMELINE_WIDTH,
    colors,
    headed,
    lane_names,
    marks,
    present,
    zoom,
)
from hta_sql.text import duration_text, duration_unit

MAX_LANES = 100
"""Maximum number of streams that remain readable in a timeline."""

MAX_BARS = 6000

NAME_CHARACTERS = 100

LANE_HEIGHT = 22

PALEST = 0.12
"""Opacity of a bar that is almost entirely idle."""

CLASSES = {name: CLASS_COLORS[name] for name in ("computation", "communication", "memory")}


@figure
def gpu_timeline(table: pd.DataFrame, *, title: str = "GPU timeline") -> alt.Chart:
    """Draw one lane per stream and one bar per operation, colored by class, with drag and zoom.

    If there are too many operations, neighbors of the same class that would touch in the picture
    are merged. Only the first 100 streams are shown. The subtitle mentions both.

    Args:
        table: Columns of the analysis ``gpu_timeline``.
        title: Title of the chart.
    """
    table, left_out = by_event(table, "start_ns", "end_ns")
    several = len(table) and table.groupby(["run", "rank"])["device"].nunique().max() > 1
    keys = ("rank", "device", "stream") if several else ("rank", "stream")
    lanes = table.assign(lane=lane_names(table, *keys))
    names = list(dict.fromkeys(lanes["lane"]))
    shown = lanes[lanes["lane"].isin(names[:MAX_LANES])]
    span = int(table["end_ns"].max()) if len(table) else 0
    bars = _merged(shown, span) if len(shown) > MAX_BARS else shown
    size, unit = duration_unit(float(span))
    pixel = span / TIMELINE_WIDTH
    ends = bars["end_ns"].clip(lower=bars["start_ns"] + pixel)
    drawn = bars.assign(
        part=bars["class"],
        start=bars["start_ns"] / size,
        end=ends / size,
        operations=bars["op_count"],
    )
    # The part of a merged bar without operations is idle, and is drawn paler.
    lasts = (ends - bars["start_ns"]).clip(lower=1)
    worked = bars["busy_ns"] if "busy_ns" in bars else bars["end_ns"] - bars["start_ns"]
    drawn["busy"] = (worked / lasts).clip(0, 1)
    drawn["name"] = drawn["name"].str.slice(0, NAME_CHARACTERS)
    drawn["lasts"] = [duration_text(ns) for ns in bars["end_ns"] - bars["start_ns"]]
    notes = _notes(len(names), len(bars), int(shown["op_count"].sum()))
    of_lane = " / ".join(keys).capitalize()
    tooltip = {
        "name": "Longest operation",
        "part": "Class",
        "lane": of_lane,
        "start:,.6~f": f"Start [{unit}]",
        "lasts": "Duration",
        "operations:": "Operations",
        "busy:.0%": "Busy",
    }
    chart = marks(
        alt.MarkDef("bar", height=LANE_HEIGHT - 6),
        drawn,
        tooltip,
        x=alt.X("start:Q", title=f"Time since the first operation [{unit}]"),
        x2="end:Q",
        y=alt.Y("lane:N", title=of_lane, sort=names[:MAX_LANES]),
        color=colors(present(CLASSES, drawn["part"]), "Class"),
        opacity=filled_to("busy"),
    )
    return chart.properties(
        title=headed(title, *notes, *left_out), width=TIMELINE_WIDTH, height=alt.Step(LANE_HEIGHT)
    ).add_params(zoom("timeline", "x"))


def filled_to(field: str) -> alt.Opacity:
    """Return an opacity encoding: paler for less busy bars, but always visible."""
    return alt.Opacity(f"{field}:Q", scale=alt.Scale(domain=[0, 1], range=[PALEST, 1]), legend=None)


def _merged(bars: pd.DataFrame, span: int) -> pd.DataFrame:
    """Merge bars that start in the same small part of a lane."""
    parts = max(20, MAX_BARS // (len(CLASSES) * bars["lane"].nunique()))
    place = bars["start_ns"] * parts // max(1, span)
    ordered = bars.assign(place=place, dur=bars["end_ns"] - bars["start_ns"])
    longest_first = ordered.sort_values("dur", ascending=False, kind="stable")
    groups = longest_first.groupby(["lane", "class", "place"], sort=True)
    return groups.agg(
        name=("name", "first"),
        start_ns=("start_ns", "min"),
        end_ns=("end_ns", "max"),
        op_count=("op_count", "sum"),
        rank=("rank", "first"),
        busy_ns=("dur", "sum"),
    ).reset_index()


def _notes(lanes: int, bars: int, operations: int) -> list[str]:
    notes = []
    if operations > bars:
        notes.append(
            f"{operations:,} operations in {bars:,} bars; a paler bar is less busy. "
            "Select steps or ranks to see more."
        )
    if lanes > MAX_LANES:
        notes.append(f"The first {MAX_LANES} of {lanes:,} streams.")
    return notes
