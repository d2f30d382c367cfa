"""Figures of device time by kind of work, and of operators below the device's roofline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS
from hta_sql.charts.drawing.style import (
    WIDTH,
    colors,
    data,
    headed,
    lane_names,
    marks,
    nothing,
    present,
    zoom,
)
from hta_sql.text import duration_unit

CATEGORIES = {
    "gemm": CLASS_COLORS["computation"],
    "attention": "#AA4499",
    "convolution": "#CC6677",
    "norm": "#66A61E",
    "elementwise": "#5BC8AF",
    "reduce": "#A6761D",
    "other": "#7A8793",
}
"""Category ─▶ color of its points; all others are "other"."""

POINTS = 300
"""Maximum number of operators and shapes, those with the most time."""

SMALLEST = 0.001
"""Minimum share of the time with known work; smaller points are irrelevant and omitted."""

_HEIGHT = 380

_LINE = 14
"""Height of the roofline plot, and of a roof's label [px]."""

MATH_TYPES = {"fp32_vector": "fp32, no tensor cores", "fp64_vector": "fp64, no tensor cores"}
"""Kind of arithmetic in the table of peaks ─▶ label, if different."""


@figure
def roofline(table: pd.DataFrame, *, top: int = POINTS) -> alt.TopLevelMixin:
    """Draw each operator and shape as a point below the roofs of its device; the area is its time.

    Ranks are summed; the points with the most time are drawn.
    """
    title = "Distance of operators from the roofline"
    known = table[
        table["roofline_ns"].notna() & (table["intensity"] > 0) & (table["device_ns"] > 0)
    ]
    if not len(known):
        why = table["reason"].dropna()
        reason = f": {why.iloc[0]}" if len(why) else ""
        return nothing(title, f"No operator with arithmetic has a known roofline{reason}.")
    keys = ["run", "name", "input_shapes", "kernels", "category", "math_type"]
    keys += ["peak_tflops", "peak_tbps"]
    sums = known.groupby(keys, as_index=False, dropna=False)
    points = sums[["call_count", "device_ns", "flops", "moved_bytes", "roofline_ns"]].sum()
    points = points[points["device_ns"] >= SMALLEST * points["device_ns"].sum()]
    points = points.nlargest(top, "device_ns")
    size, unit = duration_unit(float(points["device_ns"].max()))
    points = points.assign(
        lane=lane_names(points, "name"),
        part=points["category"].where(points["category"].isin(CATEGORIES), "other"),
        intensity=points["flops"] / points["moved_bytes"],
        math_type=points["math_type"].replace(MATH_TYPES),
        tflops=points["flops"] / points["device_ns"] / 1000,
        time=points["device_ns"] / size,
        share=points["roofline_ns"] / points["device_ns"],
    )
    covered = table.drop_duplicates(["run", "rank"])["covered_pct"].mean()
    low, high = points["intensity"].min() / 2, points["intensity"].max() * 2
    roofs = pd.DataFrame(_roofs(points, low, high))
    x = alt.X(
        "intensity:Q",
        title="Arithmetic intensity [FLOP/byte]",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
    )
    y = alt.Y("tflops:Q", title="Achieved [TFLOP/s]", scale=alt.Scale(type="log"))
    lines = Chart(data(roofs)).mark_line(color="#555555", strokeWidth=1.2)
    names = Chart(data(_named(roofs, points["tflops"].min()))).encode(
        x=x, y=alt.Y("label:Q"), text="roof:N"
    )
    area = alt.Size(
        "time:Q",
        title=f"Device time [{unit}]",
        scale=alt.Scale(range=[30, 900]),
        legend=alt.Legend(tickCount=3, orient="bottom"),
    )
    kinds = present(CATEGORIES, points["part"])
    tooltip = {
        "lane": "Operator",
        "input_shapes": "Input shapes",
        "math_type": "Arithmetic",
        "call_count:,": "Calls",
        "time:,.3f": f"Device time [{unit}]",
        "tflops:,.3~g": "Achieved [TFLOP/s]",
        "intensity:,.3~g": "Arithmetic intensity [FLOP/byte]",
        "share:.1%": "Share of the roofline",
    }
    circles = marks(
        alt.MarkDef("circle", opacity=0.8),
        points,
        tooltip,
        x=x,
        y=y,
        size=area,
        color=colors(kinds, "Category", legend=alt.Legend(orient="bottom")),
    )
    layers = alt.layer(
        lines.encode(x=x, y=y, detail="roof:N"),
        circles.add_params(zoom("roofline", "x", "y")),
        # Next to the plot: inside, they would cover points near the roof.
        names.mark_text(align="left", dx=6, fontSize=11, clip=False),
    )
    memory = ", ".join(f"{tbps:,.4g} TB/s" for tbps in sorted(points["peak_tbps"].unique()))
    notes = [
        "A point is an operator with its shapes. The closer to the roof of its arithmetic, the closer to the limit of the device.",
        f"Left of the bend, memory bandwidth is the limit ({memory}); right of it, arithmetic. Above a roof: caches served some",
        "of the bytes that the formula counts.",
        f"Sum over all ranks. The roofline is known for {covered:.0f} % of the time of computation kernels. Copies compute nothing, so they have no point.",
    ]
    return layers.properties(width=WIDTH, height=_HEIGHT, title=headed(title, *notes))


def _roofs(points: pd.DataFrame, low: float, high: float) -> Iterator[dict[str, Any]]:
    """Yield the lines of the roofline: memory slope, then the flat roof of each math type."""
    peaks = points[["math_type", "peak_tflops", "peak_tbps"]].drop_duplicates()
    for math_type, tflops, tbps in peaks.itertuples(index=False, name=None):
        bend = min(max(tflops / tbps, low), high)
        name = f"{MATH_TYPES.get(math_type, math_type)}: {tflops:,.4g}"
        for intensity in (low, bend, high):
            yield {"roof": name, "intensity": intensity, "tflops": min(tflops, intensity * tbps)}


def _named(roofs: pd.DataFrame, lowest: float) -> pd.DataFrame:
    """Place the label of each roof next to its end; move it down if roofs are close together."""
    ends = roofs.loc[roofs.groupby("roof")["intensity"].idxmax()]
    ends = ends.sort_values("tflops", ascending=False)
    decades = math.ceil(math.log10(ends["tflops"].max())) - math.floor(math.log10(lowest))
    line = _LINE / _HEIGHT * decades
    places: list[float] = []
    for tflops in ends["tflops"]:
        beside = math.log10(tflops)
        places.append(min(beside, places[-1] - line) if places else beside)
    return ends.assign(label=[10**place for place in places])
