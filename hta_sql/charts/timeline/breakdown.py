"""Draw how GPU time is spent: computation, exposed communication and copies, idle time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import PART_COLORS
from hta_sql.charts.drawing.style import lane_names

_PARTS = {
    "compute_ns": "computation",
    "exposed_communication_ns": "exposed communication",
    "exposed_memory_ns": "exposed memory",
    "idle_ns": "idle",
}


@figure
def temporal_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw computation, exposed communication, exposed memory and idle time per rank."""
    wide = table.rename(columns=_PARTS).assign(lane=lane_names(table, "rank"), place=table["rank"])
    stack = Stack(
        palette=PART_COLORS,
        title="Where the time of each GPU goes",
        notes=(
            "From the first to the last operation of each rank. Exposed: not overlapped by computation.",
        ),
        legend="GPU time",
        whole="the span",
    )
    return stacked_bars(wide, stack, percent=percent)
