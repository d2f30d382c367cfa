"""Figures of profiler steps: durations and their parts."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    NEUTRAL_COLOR,
)
from hta_sql.charts.drawing.style import WIDTH, data, tooltips
from hta_sql.text import duration_unit


@figure
def profiler_steps(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a band per run: shortest, mean and longest duration of each step over the ranks."""
    size, unit = duration_unit(float(table["dur"].max()) if len(table) else 0)
    steps = table.groupby(["run", "step"], as_index=False).agg(
        low=("dur", "min"), mean=("dur", "mean"), high=("dur", "max"), ranks=("rank", "count")
    )
    for column in ("low", "mean", "high"):
        steps[column] /= size
    tooltip = {
        "run": "Run",
        "step:": "Step",
        "low:,.3f": f"Shortest [{unit}]",
        "mean:,.3f": f"Mean [{unit}]",
        "high:,.3f": f"Longest [{unit}]",
        "ranks:": "Ranks",
    }
    base = Chart(data(steps)).encode(
        x=alt.X("step:O", title="Profiler step", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        tooltip=tooltips(tooltip),
    )
    return alt.layer(
        base.mark_rule(strokeWidth=6, opacity=0.35, color=NEUTRAL_COLOR).encode(
            y=alt.Y("low:Q", title=f"Duration [{unit}]", scale=alt.Scale(zero=False)), y2="high:Q"
        ),
        base.mark_line(color=NEUTRAL_COLOR, point=alt.OverlayMarkDef(color=NEUTRAL_COLOR)).encode(
            y="mean:Q", detail="run:N"
        ),
    ).properties(
        title=alt.Title("Profiler steps", subtitle="Mean over ranks; bar: shortest to longest"),
        width=WIDTH,
    )
