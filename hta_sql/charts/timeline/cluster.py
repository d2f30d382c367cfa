"""Figures of all ranks over all steps: slow ranks, phases of a step, utilization over time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.gaps import by_bucket
from hta_sql.charts.drawing.matrix import CELLS, filled, matrix, spread
from hta_sql.charts.drawing.palette import CHANGE_COLORS, SKY_BLUE, ramp
from hta_sql.charts.drawing.style import by_run, headed, shades
from hta_sql.text import duration_unit

BUCKETS = 4_000
"""Maximum number of time buckets of all ranks: a browser draws them in a second."""


@figure
def cluster_overview(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: each rank's own time in each step, relative to the median rank.

    If there are many ranks, those that are most often slow or deviate most are shown. If there are
    many steps, an evenly spread sample is shown.
    """
    middles = table.groupby(["run", "step"], dropna=False)["non_wait_ns"].transform("median")
    table = table.assign(excess=table["non_wait_ns"] / middles - 1)
    # One scale for all runs, so that equal colors mean equal lateness.
    most = max(0.01, float(table["excess"].abs().max() or 0))
    runs, notes = by_run(table)
    panels = []
    for run, rows in runs:
        cells = rows.assign(
            own=rows["non_wait_ns"] / 1e6,
            step=filled(rows["step"], "whole"),
            verdict=filled(rows["verdict"], "not compared"),
        )
        columns = spread(list(dict.fromkeys(cells["step"])))
        cells = cells[cells["rank"].isin(_slowest(cells)) & cells["step"].isin(columns)]
        change = [CHANGE_COLORS["shorter"], "white", CHANGE_COLORS["longer"]]
        scale = alt.Scale(domain=[-most, 0, most], range=change, interpolate="rgb")
        color = shades("excess", "Relative to the median", scale, format="+.0%")
        tooltip = {
            "host_name": "Host",
            "step": "Step",
            "own:,.3f": "Without waiting [ms]",
            "excess:+.1%": "Relative to the median",
            "verdict": "Verdict",
        }
        axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
        x = alt.X("step:O", title="Step", sort=columns, axis=axis)
        base = matrix(cells, color, tooltip, run=run, x=x)
        slow = alt.FieldOneOfPredicate("verdict", ["slow rank", "slow host", "slow stage"])
        dots = base.transform_filter(slow).mark_point(filled=True, size=16, opacity=1)
        panels.append(alt.layer(base, dots.encode(color=alt.value("black"))))
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"The {CELLS} of {ranks:,} ranks that are slow most often.")
    how = "Step time without waits for other ranks, relative to the median rank. Dot: slow rank, host or stage."
    return alt.vconcat(*panels, title=headed("Slow ranks by step", how, *notes))


def _slowest(cells: pd.DataFrame) -> set[int]:
    by_rank = cells.assign(far=cells["excess"].abs()).groupby("rank")[["slow_count", "far"]].max()
    ordered = by_rank.sort_values(["slow_count", "far"], ascending=False, kind="stable")
    return set(ordered.index[:CELLS])


@figure
def utilization_over_time(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: utilization of each device over time.

    If there are many ranks or time buckets, an evenly spread sample is shown.
    """
    table, left_out = by_bucket(table)
    size, unit = duration_unit(float((table["start_ns"] + table["dur_ns"]).max()))
    runs, notes = by_run(table)
    notes += left_out
    panels = []
    for run, rows in runs:
        chosen = spread(sorted(rows["rank"].unique()))
        shown = rows[rows["rank"].isin(chosen)]
        wide = -(-(int(rows["bucket"].max()) + 1) // (BUCKETS // len(chosen)))
        cells = (
            shown.assign(at=shown["bucket"] // wide, until=shown["start_ns"] + shown["dur_ns"])
            .groupby(["rank", "at"], as_index=False)
            .agg(
                low=("start_ns", "min"),
                high=("until", "max"),
                busy=("busy_ns", "sum"),
                seen=("observed_ns", "sum"),
            )
        )
        cells = cells[cells["seen"] > 0]
        cells = cells.assign(
            busy=(cells["busy"] / cells["seen"]).astype(float),
            low=cells["low"] / size,
            high=cells["high"] / size,
        )
        scale = alt.Scale(domain=[0, 1], range=ramp(SKY_BLUE))
        color = shades("busy", "Busy", scale, format=".0%")
        x = alt.X(
            "low:Q",
            title=f"Time since the start of the run [{unit}]",
            axis=alt.Axis(grid=False),
            scale=alt.Scale(zero=False, nice=False),
        )
        tooltip = {
            "low:,.3f": f"From [{unit}]",
            "high:,.3f": f"To [{unit}]",
            "busy:.1%": "Busy",
        }
        panels.append(matrix(cells, color, tooltip, run=run, x=x, x2="high:Q"))
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"{CELLS} of {ranks:,} ranks, sampled evenly.")
    how = "Share of the time during which a kernel, copy or memset runs. Gray: not captured."
    return alt.vconcat(*panels, title=headed("Utilization of the devices over time", how, *notes))
