"""Figure of hardware counters by kernel."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS, ramp
from hta_sql.charts.drawing.style import by_name, by_run, headed, labels, marks, shades, subtitled

COUNTERS = 12
"""Maximum number of counters in a figure."""


@figure
def kernel_counters(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw the counters of the longest kernels, as shares of each counter's highest mean.

    ``top`` applies to each run. Ranks, devices and launches are averaged, weighted by sampled time.
    """
    runs, more = by_run(table)
    panels = [_cells(rows, top, run) for run, rows in runs]
    notes = [
        "Color: share of the counter's highest mean. Empty: no sample was taken during the kernel."
    ]
    return alt.vconcat(*panels, title=headed("Hardware counters of kernels", *notes, *more))


def _cells(rows: pd.DataFrame, top: int, run: str) -> alt.LayerChart | alt.FacetChart:
    # Every kernel has a row per counter, so any counter gives the order of kernels.
    first = rows[rows["counter"] == rows["counter"].min()]
    longest = first.groupby("name")["busy_ns"].sum()
    kernels = list(longest.sort_values(ascending=False, kind="stable").index[:top])
    counters = sorted(rows["counter"].unique())[:COUNTERS]
    known = rows[rows["name"].isin(kernels) & rows["counter"].isin(counters)]
    known = known[known["mean_value"].notna()]
    weight = known["busy_ns"] * known["sampled_pct"]
    sums = (
        known.assign(weight=weight, weighted=known["mean_value"] * weight)
        .groupby(["name", "counter"], as_index=False)[["weight", "weighted", "sample_count"]]
        .sum()
    )
    cells = sums.assign(mean=sums["weighted"] / sums["weight"])
    highest = cells.groupby("counter")["mean"].transform("max")
    cells = cells.assign(part=(cells["mean"] / highest).where(highest > 0, 0.0))
    short = dict(zip(kernels, labels(kernels), strict=True))
    cells = cells.assign(short=cells["name"].map(short), place=cells["name"].map(kernels.index))
    cells = cells.sort_values(["place", "counter"], kind="stable")
    tooltip = {
        "name": "Kernel",
        "counter": "Counter",
        "mean:,.4~g": "Mean while it runs",
        "sample_count:,": "Samples",
    }
    x = alt.X("counter:N", title=None, sort=counters, axis=alt.Axis(labelAngle=-40, labelLimit=320))
    scale = alt.Scale(domain=[0, 1], range=ramp(CLASS_COLORS["computation"]))
    color = shades("part", "Share of the highest", scale, format="%", orient="bottom")
    squares = marks(
        alt.MarkDef("rect", stroke="white"), cells, tooltip, y=by_name(cells), x=x, color=color
    )
    dark = alt.condition("datum.part > 0.6", alt.value("white"), alt.value("#333333"))
    numbers = squares.mark_text(fontSize=10).encode(
        text=alt.Text("mean:Q", format=",.3~g"), color=dark
    )
    panel = alt.layer(squares, numbers).properties(width=alt.Step(64), height=alt.Step(20))
    return panel.properties(title=subtitled(f"Run {run}")) if run else panel
