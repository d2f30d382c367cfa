"""Bars of time by name, split into parts, with a panel for each side: device and host."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import NEUTRAL_COLOR, PHASE_COLORS
from hta_sql.charts.drawing.style import (
    bars_by_name,
    by_name,
    colors,
    duration_unit,
    labels,
    lane_names,
    present,
    subtitled,
)

PARTS = {
    "self": NEUTRAL_COLOR,
    "backward pass": PHASE_COLORS["backward"],
    "forward": PHASE_COLORS["forward"],
    "backward": PHASE_COLORS["backward"],
}


def side_panels(
    table: pd.DataFrame, name: str, sides: dict[str, dict[str, str]], top: int
) -> list[alt.Chart]:
    """Draw the most expensive names of each side, summed over all ranks."""
    known = table[table[name].notna()]
    sums = known.assign(lane=lane_names(known, name)).groupby("lane", as_index=False)
    numbers = [column for parts in sides.values() for column in parts.values()]
    costs = sums[numbers].sum().assign(calls=sums["call_count"].sum(min_count=1)["call_count"])
    panels = []
    for side, parts in sides.items():
        costs["all"] = costs[list(parts.values())].sum(axis=1)
        rows = costs[costs["all"] > 0].nlargest(top, "all")
        if len(rows):
            panels.append(_bars(rows, side, parts))
    return panels


def _bars(rows: pd.DataFrame, side: str, parts: dict[str, str]) -> alt.Chart:
    size, unit = duration_unit(float(rows["all"].max()))
    rows = rows.assign(short=labels(rows["lane"]))
    long = pd.concat(
        [rows.assign(part=part, time=rows[column] / size) for part, column in parts.items()]
    )
    long = long[long["time"] > 0]
    palette = present(PARTS, long["part"])
    time = f"Self time [{unit}]"
    tooltip = {"lane": "Where", "part": "Time", "time:,.3f": time, "calls:,": "Calls"}
    color = colors(palette, None, legend=alt.Legend() if len(palette) > 1 else None)
    bars = bars_by_name(long, alt.X("time:Q", title=time), tooltip, color, y=by_name(rows))
    return bars.properties(title=subtitled(side))
