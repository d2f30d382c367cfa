"""Who holds up the others: steps of the ranks, late starts of a collective, counters of kernels."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.palette import NEUTRAL_COLOUR, PALE_COLOUR
from hta_sql.charts.style import (
    WIDTH,
    bars,
    colours,
    data,
    duration_unit,
    headed,
    lane_names,
    lanes,
    marks,
    nothing,
    panel_each,
    present,
    told,
)

__all__ = [
    "cupti_counters_by_operator",
    "potential_stragglers",
    "profiler_steps",
    "straggler_metric",
]

NO_VERDICT = "Some ranks are always the last, by HTA's rule: no verdict. Who is late is judged by “Who holds up the others” (stragglers)."
AMONG_LAST, BEFORE = "among the last", "before them"
STARTS = {AMONG_LAST: NEUTRAL_COLOUR, BEFORE: PALE_COLOUR}

STEPS_SHOWN = 6
RANKS_SHOWN = 32
OPERATORS_SHOWN = 25


def profiler_steps(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A band per run: shortest, mean and longest duration of each step over the ranks."""
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
    base = alt.Chart(data(steps)).encode(
        x=alt.X("step:O", title="Profiler step", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        tooltip=told(tooltip),
    )
    return alt.layer(
        base.mark_rule(strokeWidth=6, opacity=0.35, color=NEUTRAL_COLOUR).encode(
            y=alt.Y("low:Q", title=f"Duration [{unit}]", scale=alt.Scale(zero=False)), y2="high:Q"
        ),
        base.mark_line(color=NEUTRAL_COLOUR, point=alt.OverlayMarkDef(color=NEUTRAL_COLOUR)).encode(
            y="mean:Q", detail="run:N"
        ),
    ).properties(
        title=alt.Title("Profiler steps", subtitle="Mean over ranks; bar: shortest to longest"),
        width=WIDTH,
    )


def potential_stragglers(table: pd.DataFrame) -> alt.TopLevelMixin:
    """One bar per rank: in how many steps it starts the collective among the last."""
    heading = "Ranks that start a collective last"
    if not table["late_count"].fillna(0).any():
        reasons = ", ".join(dict.fromkeys(table["reason"].dropna())) or "all start at once"
        return nothing(heading, f"No rank is late: {reasons}.")
    size, unit = duration_unit(float(table["max_late_ns"].max()))
    rows = table.assign(
        lane=lane_names(table, "rank"),
        late=table["total_late_ns"] / size / table["step_count"],
    )
    x, width = lanes(rows)
    how = "In how many steps a rank is among the last to start the collective that ranks wait for most."
    axis = _counting_axis(int(rows["late_count"].fillna(0).max()))
    tooltip = {
        "lane": "Rank",
        "late_count:": "Steps among the last",
        "step_count:": "Steps",
        "late:,.3f": f"Mean start after the first [{unit}]",
        "name": "Collective",
        "reason": "Not measured, because",
    }
    y = alt.Y("late_count:Q", title="Steps among the last", axis=axis)
    chart = bars(rows, tooltip, NEUTRAL_COLOUR, x=x, y=y)
    return chart.properties(title=headed(heading, how, NO_VERDICT), width=width)


def _counting_axis(most: int) -> alt.Axis:
    """Put no tick between whole numbers: a few of them would else share a label."""
    if most <= 10:
        return alt.Axis(values=list(range(most + 1)), format="d")
    return alt.Axis(tickMinStep=1, format="d")


def straggler_metric(table: pd.DataFrame) -> alt.TopLevelMixin:
    """The collective of each step as a timeline: a bar per rank, from its start to its end.

    The first steps and the ranks that are latest in total are shown.
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
        "start:,.3f": f"Start after the first [{unit}]",
        "length:,.3f": f"Duration [{unit}]",
        "normalized_start:,.4f": "Start in mean steps",
    }
    in_order = [name for name in _in_order(named) if name in ranks]
    bands = marks(
        alt.MarkDef("bar", stroke="white", strokeWidth=0.5),
        rows,
        tooltip,
        x=alt.X("start:Q", title=f"Time since the first rank's start [{unit}]"),
        x2="end:Q",
        y=alt.Y("lane:N", title="Rank", sort=in_order),
        color=colours(present(STARTS, rows["begins"]), "Starts", "begins"),
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
    how = "; ".join(["Who starts late ends with the others and kept them waiting", *left_out])
    return chart.properties(
        title=headed("The collective that ranks wait for most differently", f"{how}.", NO_VERDICT)
    )


def cupti_counters_by_operator(table: pd.DataFrame) -> alt.TopLevelMixin:
    """One bar per operator: floating-point operations of the kernels that it launched."""
    title = "Floating-point operations by operator"
    counted = table[table["flop_weight"].notna()]
    if counted.empty:
        return nothing(title, "None of these counters counts floating-point operations.")
    parts = counted.assign(
        flops=counted["value"] * counted["flop_weight"].astype(float),
        operator=counted["bottom_level_op"].fillna("(unknown)"),
    )
    totals = parts.groupby("operator", as_index=False).agg(
        flops=("flops", "sum"), kernels=("event_id", "nunique")
    )
    shown = totals.sort_values(["flops", "operator"], ascending=[False, True])[:OPERATORS_SHOWN]
    tooltip = {"operator": "Operator", "flops:,.0f": "Operations", "kernels:": "Kernels"}
    x = alt.X("flops:Q", title="Operations counted", axis=alt.Axis(format="~s"))
    y = alt.Y("operator:N", title=None, sort=list(shown["operator"]))
    return bars(shown, tooltip, NEUTRAL_COLOUR, x=x, y=y).properties(title=title, width=WIDTH)


def _step_names(table: pd.DataFrame) -> list[str]:
    runs = [f"{run}: " for run in table["run"]] if len(set(table["run"])) > 1 else [""] * len(table)
    return [
        f"{run}step {int(step)}" if step == step else f"{run}the whole run"  # noqa: PLR0124 - NaN
        for run, step in zip(runs, table["step"].astype(float), strict=True)
    ]


def _in_order(table: pd.DataFrame) -> list[str]:
    ordered = table.sort_values(["run", "rank"], kind="stable")
    return list(dict.fromkeys(ordered["lane"]))
