"""Figures of notable calls on each rank, and of hardware counters of kernels."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import NEUTRAL_COLOR
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    bars,
    by_run,
    data,
    headed,
    label_angle,
    nothing,
    subtitled,
    tooltips,
)

OPERATORS_SHOWN = 25


@figure
def special_operators(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: counts of notable calls on each rank, with deviations marked.

    If there are many ranks, those that deviate most from the median rank are shown.
    """
    runs, notes = by_run(table)
    panels = []
    for run, rows in runs:
        differs = rows["is_different"].astype(object).eq(True)
        places = rows.assign(differs=differs).groupby("rank")["differs"].sum()
        ordered = places.sort_values(ascending=False, kind="stable")
        kept = rows.assign(differs=differs)[rows["rank"].isin(set(ordered.index[: MANY // 2]))]
        cells = kept[["kind", "rank", "op_count", "differs", "meaning"]]
        ranks = [str(rank) for rank in sorted(cells["rank"].unique())]
        x = alt.X("rank:O", title="Rank", axis=alt.Axis(labelAngle=label_angle(ranks, 32)))
        base = Chart(data(cells), width=alt.Step(32), height=alt.Step(20)).encode(
            x=x, y=alt.Y("kind:N", title=None, axis=alt.Axis(labelLimit=260))
        )
        boxes = base.mark_rect().encode(
            color=alt.condition("datum.differs", alt.value("#E7C8D3"), alt.value("#F3F5F7")),
            tooltip=tooltips({"rank": "Rank", "op_count:,": "Count", "meaning": "Meaning"}),
        )
        texts = base.mark_text(fontSize=11, color="black").encode(
            text=alt.Text("op_count:Q", format=".3~s")
        )
        panel = alt.layer(boxes, texts)
        panels.append(panel.properties(title=subtitled(f"Run {run}")) if run else panel)
        if len(kept["rank"].unique()) < rows["rank"].nunique():
            notes.append(
                f"The {MANY // 2} of {rows['rank'].nunique():,} ranks with the most differences."
            )
    how = "Number of operations on each rank. Colored: different from the median rank."
    title = headed("Special operators of each rank", how, *dict.fromkeys(notes))
    return alt.vconcat(*panels, title=title)


@figure
def cupti_counters_by_operator(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the floating-point operations of each operator's kernels."""
    title = "Floating-point operations by operator"
    counted = table[table["flop_weight"].notna()]
    if counted.empty:
        return nothing(title, "No recorded counter counts floating-point operations.")
    parts = counted.assign(
        flops=counted["value"] * counted["flop_weight"].astype(float),
        operator=counted["bottom_level_op"].fillna("(unknown)"),
    )
    totals = parts.groupby("operator", as_index=False).agg(
        flops=("flops", "sum"), kernels=("event_id", "nunique")
    )
    shown = totals.sort_values(["flops", "operator"], ascending=[False, True])[:OPERATORS_SHOWN]
    tooltip = {"operator": "Operator", "flops:,.0f": "Operations", "kernels:": "Kernels"}
    x = alt.X("flops:Q", title="Counted operations", axis=alt.Axis(format="~s"))
    y = alt.Y("operator:N", title=None, sort=list(shown["operator"]))
    return bars(shown, tooltip, NEUTRAL_COLOR, x=x, y=y).properties(title=title, width=WIDTH)
