"""Figures of stragglers: their cost for other ranks, and late starts of collectives."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    NEUTRAL_COLOR,
    PALE_COLOR,
)
from hta_sql.charts.drawing.style import (
    WIDTH,
    colors,
    headed,
    lane_names,
    marks,
    panel_each,
    present,
)
from hta_sql.text import duration_unit

NO_VERDICT = "HTA's rule always names some ranks, so it gives no verdict; for one, see the chart “Stragglers”."

AMONG_LAST, BEFORE = "among the last", "earlier"

STARTS = {AMONG_LAST: NEUTRAL_COLOR, BEFORE: PALE_COLOR}


STEPS_SHOWN = 6

RANKS_SHOWN = 32


@figure
def straggler_metric(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the collective of each step as a timeline: a bar per rank, from start to end.

    Shows the first steps, and the ranks with the largest total lateness.
    """
    named = table.assign(
        lane=lane_names(table, "rank"),
        step_name=_step_names(table),
        begins=table["is_late"].map({True: AMONG_LAST, False: BEFORE}),
    )
    lateness = named.groupby("lane", sort=False)["late_ns"].sum()
    ranks = list(lateness.sort_values(ascending=False, kind="stable").index[:RANKS_SHOWN])
    steps = list(dict.fromkeys(named["step_name"]))[:STEPS_SHOWN]
    shown = named[named["lane"].isin(ranks) & named["step_name"].isin(steps)]
    size, unit = duration_unit(float((shown["late_ns"] + shown["dur"]).max()) if len(shown) else 0)
    rows = shown.assign(
        start=shown["late_ns"] / size,
        end=(shown["late_ns"] + shown["dur"]) / size,
        length=shown["dur"] / size,
    )
    tooltip = {
        "lane": "Rank",
        "step_name": "Step",
        "name": "Collective",
        "start:,.3f": f"Delay after the first rank [{unit}]",
        "length:,.3f": f"Duration [{unit}]",
        "normalized_start:,.4f": "Start [mean steps]",
    }
    in_order = [name for name in _in_order(named) if name in ranks]
    bands = marks(
        alt.MarkDef("bar", stroke="white", strokeWidth=0.5),
        rows,
        tooltip,
        x=alt.X("start:Q", title=f"Time since the first rank's start [{unit}]"),
        x2="end:Q",
        y=alt.Y("lane:N", title="Rank", sort=in_order),
        color=colors(present(STARTS, rows["begins"]), "Starts", "begins"),
    ).properties(width=WIDTH, height=alt.Step(14))
    chart = bands.facet(row=panel_each("step_name", steps))
    left_out = [
        f"{len(part)} of {whole} {words}"
        for part, whole, words in (
            (ranks, len(lateness), "ranks"),
            (steps, named["step_name"].nunique(), "steps"),
        )
        if len(part) < whole
    ]
    how = "; ".join(
        [
            "A rank that starts late ends together with the others, which have waited for it",
            *left_out,
        ]
    )
    return chart.properties(
        title=headed("The collective whose waits differ most between ranks", f"{how}.", NO_VERDICT)
    )


def _step_names(table: pd.DataFrame) -> list[str]:
    runs = [f"{run}: " for run in table["run"]] if len(set(table["run"])) > 1 else [""] * len(table)
    return [
        f"{run}step {int(step)}" if step == step else f"{run}the whole run"  # noqa: PLR0124 - false for NaN
        for run, step in zip(runs, table["step"].astype(float), strict=True)
    ]


def _in_order(table: pd.DataFrame) -> list[str]:
    ordered = table.sort_values(["run", "rank"], kind="stable")
    return list(dict.fromkeys(ordered["lane"]))
