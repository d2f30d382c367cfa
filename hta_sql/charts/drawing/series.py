"""Lines over time with a lane for each stream or kind, and the distribution of their values."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.gaps import by_steps
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    data,
    followed,
    headed,
    lane_names,
    marks,
    nothing,
    panel_each,
    tooltips,
)
from hta_sql.text import duration_unit, first_of

SLICES = 400
"""Number of slices of time, each drawn at its highest value."""

LANES_SHOWN = 12
"""Maximum number of series, each in its own panel."""

FEW = 4
"""Maximum number of omitted series to name."""

DISTRIBUTION = {
    "min": "Lowest",
    "p25": "First quartile",
    "p50": "Median",
    "p75": "Third quartile",
    "max": "Highest",
    "time_mean": "Mean over time",
    "point_count": "Changes",
}
"""Statistics of a series over its changes ─▶ label."""


def series(
    table: pd.DataFrame,
    value: str,
    title: str,
    heading: str,
    color: str,
    *notes: str,
    axis: alt.Axis | None = None,
) -> alt.TopLevelMixin:
    """Draw a panel for each lane with nonzero values, limited to the lanes with the highest ones.

    Args:
        table: A row for each change of the value, with the column ``lane``.
        value: Column of the value.
        title: Title of the value axis.
        heading: Title of the chart.
        color: Color of the areas.
        *notes: How to read the chart, one line each.
        axis: Axis with the number format.
    """
    table, left_out = by_steps(table)
    peaks = table.groupby("lane", sort=False)[value].max()
    moving = peaks[peaks > 0]
    highest = moving.sort_values(ascending=False, kind="stable").index[:LANES_SHOWN]
    shown = [lane for lane in peaks.index if lane in set(highest)]
    if not shown:
        return nothing(heading, "The value is always 0." if len(peaks) else "There are no values.")
    left_out += _left_out(peaks, len(moving), len(shown))
    if max(moving[shown]) > min(moving[shown]):
        left_out.append("Each panel has its own scale.")
    first, last = table["ts"].min(), table["ts"].max()
    size, unit = duration_unit(float(last - first))
    edges = np.linspace(first, max(last, first + 1), SLICES + 1)
    steps = pd.concat(
        _highest(own, value, edges).assign(lane=lane, rank=own["rank"].iloc[0])
        for lane, own in ((lane, table[table["lane"] == lane]) for lane in shown)
    )
    steps["time"] = (steps["time"] - first) / size
    zoom = alt.selection_interval(bind="scales", encodings=["x"])
    areas = marks(
        alt.MarkDef(
            "area", interpolate="step-after", color=color, opacity=0.75, line={"color": color}
        ),
        steps,
        {"lane": "Where", "time:,.3f": f"Time [{unit}]", "value:,.4~g": title},
        x=alt.X(
            "time:Q", title=f"Time [{unit}], the same in all panels", scale=alt.Scale(nice=False)
        ),
        y=alt.Y("value:Q", title=None, axis=axis or alt.Axis(tickCount=3)),
    ).properties(width=WIDTH, height=50)
    how = f"Vertical axis: {title}, the maximum in each of {SLICES} slices of time."
    return areas.add_params(zoom).facet(
        row=panel_each("lane", shown),
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(y="independent")),
        title=headed(heading, *notes, how, *left_out),
    )


def lanes_by(table: pd.DataFrame, *columns: str) -> list[str]:
    """Return lane names such as "rank 0, device 2, stream 7"; texts are unchanged."""
    words = {
        name: table[name].map(lambda value, name=name: f"{name} {_number(value)}")
        for name in columns
        if pd.api.types.is_numeric_dtype(table[name])
    }
    return [lane.replace(" / ", ", ") for lane in lane_names(table.assign(**words), *columns)]


def _number(value: float) -> str:
    return "none" if pd.isna(value) else f"{value:.0f}"


def _left_out(peaks: pd.Series[float], moving: int, shown: int) -> list[str]:
    """Return notes on the lanes without a panel."""
    still = [str(lane) for lane, peak in peaks.items() if not peak > 0]
    return [
        *([f"The {shown} of {moving} panels with the highest values."] if shown < moving else []),
        *([f"Always 0: {first_of(still, FEW)}."] if still else []),
    ]


def _highest(lane: pd.DataFrame, value: str, edges: NDArray[np.float64]) -> pd.DataFrame:
    """Return the highest value in each slice, including the value at its start."""
    ts = lane["ts"].to_numpy(dtype=float)
    values = np.nan_to_num(lane[value].to_numpy(dtype=float))
    before = np.searchsorted(ts, edges[:-1], side="right") - 1
    highest = np.where(before >= 0, values[before], 0.0)
    slots = np.clip(np.searchsorted(edges, ts, side="right") - 1, 0, SLICES - 1)
    np.maximum.at(highest, slots, values)
    # A slice with the same value as the previous one needs no point, except the last one.
    is_step = np.r_[True, highest[1:] != highest[:-1]]
    is_step[-1] = True
    return pd.DataFrame({"time": edges[:-1][is_step], "value": highest[is_step]})


def distribution(
    table: pd.DataFrame,
    measure: str,
    title: str,
    heading: str,
    *notes: str,
    color: str,
    unknown: str,
) -> alt.TopLevelMixin:
    """Draw the distribution of a value for each lane: range, quartiles, mean over time.

    Args:
        table: A row for each lane, with the column ``lane``.
        measure: Suffix of the value's columns, such as ``queue_length``.
        title: Title of the value axis.
        heading: Title of the chart.
        *notes: How to read the chart, one line each.
        color: Color of the boxes.
        unknown: Sentence to show if no value is known.
    """
    table = table.rename(columns={f"{part}_{measure}": part for part in DISTRIBUTION})
    known = table[table["max"].notna()].sort_values("max", ascending=False, kind="stable")
    if known.empty:
        return nothing(heading, unknown)
    shown = known[:MANY]
    y = alt.Y("lane:N", title=None, sort=list(shown["lane"]), axis=alt.Axis(labelLimit=300))
    known_parts = {part: words for part, words in DISTRIBUTION.items() if part in shown}
    tooltip = {f"{part}:,.4~g": words for part, words in known_parts.items()}
    base = Chart(data(followed(shown, ["lane", *known_parts])))
    base = base.encode(y=y, tooltip=[alt.Tooltip("lane:N"), *tooltips(tooltip)])
    subtitle = "Line: lowest to highest. Bar: quartiles. Tick: median."
    if "time_mean" in known_parts:
        subtitle += " Point: mean over time."
    if len(shown) < len(known):
        subtitle += f" {len(shown)} of {len(known)} shown."
    layers = [
        base.mark_rule(color=color).encode(x=alt.X("min:Q", title=title), x2="max:Q"),
        base.mark_bar(color=color, opacity=0.6, height=10).encode(x="p25:Q", x2="p75:Q"),
        base.mark_tick(color="black", thickness=2, height=14).encode(x="p50:Q"),
    ]
    if "time_mean" in known_parts:
        layers.append(base.mark_circle(color="black", size=45, opacity=1).encode(x="time_mean:Q"))
    return alt.layer(*layers).properties(title=headed(heading, *notes, subtitle), width=WIDTH)
