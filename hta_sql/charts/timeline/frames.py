"""Timeline of any data frame of events with lanes, starts and ends, colored by name."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import NORMAL_COLOR, SERIES_COLORS
from hta_sql.charts.drawing.style import TIMELINE_WIDTH, colors, headed, marks, readable, zoom
from hta_sql.text import duration_unit

MAX_EVENTS = 5000

REST = "(others)"


def frame_timeline(events: pd.DataFrame, title: str, hover: list[str], height: int) -> alt.Chart:
    """Draw one bar per event.

    If there are more than 5000 events, only the longest are drawn, and the subtitle says so.

    Args:
        events: ``start`` and ``end`` (µs), ``task`` (the lane), ``color`` (a name), and the
            columns of ``hover``.
        title: Title of the chart.
        hover: Columns for the tooltip.
        height: Height of a lane [pixels].
    """
    lasts = events["end"] - events["start"]
    shown = events.loc[lasts.nlargest(MAX_EVENTS).index] if len(events) > MAX_EVENTS else events
    common = list(lasts.groupby(events["color"]).sum().nlargest(len(SERIES_COLORS)).index)
    span = float(events["end"].max() - events["start"].min()) if len(events) else 0.0
    size, unit = duration_unit(1000 * span)
    scale = 1000 / size
    drawn = shown[["task", "color", *hover]].copy()
    drawn["group"] = shown["color"].where(shown["color"].isin(common), REST)
    drawn["x"] = (shown["start"] - events["start"].min()) * scale
    drawn["x2"] = (shown["end"] - events["start"].min()) * scale
    drawn = readable(drawn.rename(columns={name: f"hover {name}" for name in hover}))
    palette = dict(zip(common, SERIES_COLORS, strict=False)) | {REST: NORMAL_COLOR}
    note = f"the longest {MAX_EVENTS:,} of {len(events):,} events"
    chart = marks(
        "bar",
        drawn,
        {
            "color": "Name",
            "x:,.6~f": f"Start [{unit}]",
            **{f"hover {name}": name for name in hover},
        },
        x=alt.X("x:Q", title=f"Time [{unit}]"),
        x2="x2:Q",
        y=alt.Y("task:N", title=None, sort=sorted(set(drawn["task"]))),
        color=colors(palette, "Name", "group"),
    )
    notes = [note] if len(events) > MAX_EVENTS else []
    return chart.properties(
        title=headed(title, *notes), width=TIMELINE_WIDTH, height=alt.Step(height)
    ).add_params(zoom("timeline", "x"))
