"""Figures of profiler steps: durations and their parts."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, mean_steps, stacked_parts
from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    CLASS_COLORS,
    DATA_LOADING_COLOR,
    HOST_COLORS,
    IDLE_COLORS,
    NEUTRAL_COLOR,
    UNMATCHED_COLOR,
    WAIT_COLOR,
)
from hta_sql.charts.drawing.style import WIDTH, data, duration_unit, tooltips

STEP_PARTS = {
    "compute_ns": ("compute", CLASS_COLORS["computation"]),
    "exposed_transfer_ns": ("transfer", CLASS_COLORS["communication"]),
    "exposed_unmatched_ns": ("transfer or wait", UNMATCHED_COLOR),
    "exposed_wait_ns": ("wait", WAIT_COLOR),
    "exposed_memory_ns": ("copies", CLASS_COLORS["memory"]),
    "unrecorded_before_ns": ("earlier work, unrecorded", "#C9B7E0"),
    "unrecorded_lost_ns": ("lost records", "#B39DD3"),
    "unrecorded_after_ns": ("unrecorded at the end", "#DCD0EC"),
    "idle_before_ns": ("idle before", IDLE_COLORS["before"]),
    "idle_between_ns": ("idle between", IDLE_COLORS["between"]),
    "idle_after_ns": ("idle after", IDLE_COLORS["after"]),
}
"""Column of ``step_accounting`` ─▶ label and color, in stacking order."""

STEP_ROLES = {
    "kernel_ns": ("kernel", CLASS_COLORS["computation"]),
    "memcpy_ns": ("memcpy", CLASS_COLORS["memory"]),
    "memset_ns": ("memset", "#7FCDB4"),
    "communication_ns": ("communication", CLASS_COLORS["communication"]),
    "runtime_ns": ("runtime", HOST_COLORS["runtime call"]),
    "data_loader_ns": ("data loader", DATA_LOADING_COLOR),
    "cpu_exec_ns": ("CPU exec", "#8C96A0"),
    "other_ns": ("other", "#DDE2E6"),
}
"""Column of ``step_breakdown`` ─▶ label and color, in stacking order."""


@figure
def step_accounting(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw the mean step of each rank, in parts that add up to it."""
    stack = Stack(
        title="Where a step goes",
        notes=(
            "Mean of the host's steps of each rank. Transfers, waits for other ranks and copies count only if not overlapped by",
            "computation. Transfer or wait: not matched with other ranks, so it is unknown which. Idle: before the first GPU",
            "operation, between operations, after the last. Unrecorded: the GPU ran work that is not in the trace; this time is",
            "neither idle nor compute.",
        ),
        legend="Part",
        whole="the step",
    )
    return stacked_parts(mean_steps(table, STEP_PARTS), STEP_PARTS, stack, percent=percent)


@figure
def step_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw the mean step of each rank, in eight roles that add up to it."""
    stack = Stack(
        title="Roles of the time of a step",
        notes=(
            "Mean device step of each rank. A device step ends when all operations launched in it have ended, so it is",
            "longer than the host step and overlaps the next one. Each moment counts for the first role that applies,",
            "from left to right.",
        ),
        legend="Role",
        whole="the step",
    )
    return stacked_parts(mean_steps(table, STEP_ROLES), STEP_ROLES, stack, percent=percent)


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
