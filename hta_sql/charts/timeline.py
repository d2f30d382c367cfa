"""Where the time of each GPU goes, and why its streams are idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from hta_sql.charts.style import (
    CAUSE_COLOURS,
    PART_COLOURS,
    colours,
    data,
    duration_unit,
    lane_names,
    lanes,
    order,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["idle_time_breakdown", "temporal_breakdown"]

_PARTS = {
    "compute_ns": "computation",
    "exposed_communication_ns": "exposed communication",
    "exposed_memory_ns": "exposed memory",
    "idle_ns": "idle",
}


def temporal_breakdown(table: pd.DataFrame) -> alt.Chart:
    """One stacked bar per rank: computation, exposed communication and memory, idle [% of span].

    Args:
        table: Columns of the analysis ``temporal_breakdown``.
    """
    wide = table.assign(lane=lane_names(table, "rank"))
    tall = wide.melt(
        id_vars=["lane", "span_ns"], value_vars=list(_PARTS), var_name="part", value_name="time_ns"
    )
    tall["part"] = tall["part"].map(_PARTS)
    tall["place"] = order(PART_COLOURS, tall)
    size, unit = duration_unit(float(table["span_ns"].max()) if len(table) else 0)
    tall["share"] = tall["time_ns"] / tall["span_ns"].where(tall["span_ns"] > 0)
    tall["time"] = tall["time_ns"] / size
    x, width = lanes(tall)
    chart: alt.Chart = (
        alt.Chart(
            data(tall[["lane", "part", "place", "share", "time"]]),
            title="GPU time of each rank",
            width=width,
        )
        .mark_bar()
        .encode(
            x=x,
            y=alt.Y("share:Q", title="Share of the span", axis=alt.Axis(format="%")),
            color=colours(PART_COLOURS, "GPU time"),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("lane:N", title="Rank"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("time:Q", title=f"Time [{unit}]", format=",.3f"),
                alt.Tooltip("share:Q", title="Share of the span", format=".2%"),
            ],
        )
    )
    return chart


def idle_time_breakdown(table: pd.DataFrame, *, percent: bool = True) -> alt.Chart:
    """One stacked bar per device stream: idle time by cause.

    Args:
        table: Columns of the analysis ``idle_time_breakdown``.
        percent: Shares of the stream's idle time instead of times.
    """
    # The device tells streams apart only where a rank has several.
    several = len(table) and table.groupby(["run", "rank"])["device"].nunique().max() > 1
    keys = ("rank", "device", "stream") if several else ("rank", "stream")
    tall = table.assign(lane=lane_names(table, *keys), part=table["category"])
    tall["place"] = order(CAUSE_COLOURS, tall)
    size, unit = duration_unit(
        float(tall.groupby("lane")["idle_ns"].sum().max()) if len(tall) else 0
    )
    tall["time"] = tall["idle_ns"] / size
    tall["share"] = tall["idle_pct"] / 100
    x, width = lanes(tall, title=" / ".join(key.capitalize() for key in keys))
    y = (
        alt.Y("share:Q", title="Share of the idle time", axis=alt.Axis(format="%"))
        if percent
        else alt.Y("time:Q", title=f"Idle time [{unit}]")
    )
    chart: alt.Chart = (
        alt.Chart(
            data(tall[["lane", "part", "place", "share", "time", "gap_count"]]),
            title="Idle time of each stream by cause",
            width=width,
        )
        .mark_bar()
        .encode(
            x=x,
            y=y,
            color=colours(CAUSE_COLOURS, "Cause"),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("lane:N", title=" / ".join(keys)),
                alt.Tooltip("part:N", title="Cause"),
                alt.Tooltip("time:Q", title=f"Idle time [{unit}]", format=",.3f"),
                alt.Tooltip("share:Q", title="Share", format=".2%"),
                alt.Tooltip("gap_count:Q", title="Gaps"),
            ],
        )
    )
    return chart
