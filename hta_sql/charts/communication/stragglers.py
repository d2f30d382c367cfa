"""Figures of stragglers: their cost for other ranks, and late starts of collectives."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    NEUTRAL_COLOR,
    NORMAL_COLOR,
    OUTLIER_COLOR,
    PALE_COLOR,
)
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    bars,
    colors,
    duration_unit,
    headed,
    lane_names,
    lanes,
    marks,
    nothing,
    panel_each,
    present,
)

NO_VERDICT = "HTA's rule always names some ranks, so it gives no verdict; for one, see the chart “Stragglers”."

AMONG_LAST, BEFORE = "among the last", "earlier"

STARTS = {AMONG_LAST: NEUTRAL_COLOR, BEFORE: PALE_COLOR}

VERDICTS = {
    "straggler": OUTLIER_COLOR,
    "intermittent": "#E69F00",
    "suspected": "#F0C571",
    "no straggler": NORMAL_COLOR,
    "unknown": "#E8E8E8",
}

STEPS_SHOWN = 6

RANKS_SHOWN = 32


@figure
def stragglers(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the excess of each rank's own work over its peers, as a share of the compared time.

    If there are many ranks, those with the largest excess are shown.
    """
    title = "Stragglers"
    if not table["is_straggler"].notna().any():
        reasons = table["verdict_reason"].dropna().unique()
        return nothing(title, f"No verdict is possible: {'; '.join(reasons)}.")
    ordered = table.sort_values("late_ns", ascending=False, kind="stable", na_position="last")
    kept = table.loc[sorted(ordered.index[:MANY])]
    size, unit = duration_unit(float(kept["late_ns"].abs().max()) if len(kept) else 0)
    rows = kept.assign(
        lane=lane_names(kept, "rank"),
        late=kept["verdict"]
        .map({"none": "no straggler", "unknown": "unknown"})
        .fillna(kept["verdict"]),
        share=kept["late_pct"].astype(float) / 100,
        gain=kept["cost_pct"].astype(float) / 100,
        time=kept["late_ns"].astype(float) / size,
        steps=kept["late_step_count"].astype(float),
    )
    x, width = lanes(rows)
    notes = [
        "Own work (compute, exposed copies, idle time) beyond the median of the peers. Waits and transfers are not own work."
    ]
    if len(kept) < len(table):
        notes.append(f"The {len(kept)} of {len(table):,} ranks with the most extra work.")
    tooltip = {
        "lane": "Rank",
        "late": "Verdict",
        "time:,.3f": f"Extra work [{unit}]",
        "share:.2%": "Share of the time",
        "gain:.2%": "Extra wait of the peers",
        "steps:.0f": "Late steps",
        "cause": "Cause",
        "subject": "Mostly in",
    }
    y = alt.Y("share:Q", title="Extra work", axis=alt.Axis(format="%"))
    color = colors(present(VERDICTS, rows["late"]), None, "late")
    chart = bars(rows, tooltip, color, x=x, y=y)
    return chart.properties(title=headed(title, *notes), width=width)


@figure
def potential_stragglers(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw in how many steps each rank is among the last to start the collective."""
    heading = "Ranks that start a collective last"
    if not table["late_count"].fillna(0).any():
        reasons = (
            ", ".join(dict.fromkeys(table["reason"].dropna())) or "all ranks start at the same time"
        )
        return nothing(heading, f"No rank is late: {reasons}.")
    size, unit = duration_unit(float(table["max_late_ns"].max()))
    rows = table.assign(
        lane=lane_names(table, "rank"),
        late=table["total_late_ns"] / size / table["step_count"],
    )
    x, width = lanes(rows)
    how = "Number of steps in which a rank is among the last to start the collective with the longest waits."
    axis = _counting_axis(int(rows["late_count"].fillna(0).max()))
    tooltip = {
        "lane": "Rank",
        "late_count:": "Steps among the last",
        "step_count:": "Steps",
        "late:,.3f": f"Mean delay after the first rank [{unit}]",
        "name": "Collective",
        "reason": "Not measured because",
    }
    y = alt.Y("late_count:Q", title="Steps among the last", axis=axis)
    chart = bars(rows, tooltip, NEUTRAL_COLOR, x=x, y=y)
    return chart.properties(title=headed(heading, how, NO_VERDICT), width=width)


def _counting_axis(most: int) -> alt.Axis:
    """Return an axis with ticks at integers only, so that no two ticks share a label."""
    if most <= 10:
        return alt.Axis(values=list(range(most + 1)), format="d")
    return alt.Axis(tickMinStep=1, format="d")


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
