"""Figure that shows what bounds the critical path of each rank."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_parts
from hta_sql.charts.drawing.palette import COLORS
from hta_sql.charts.shown import themed

_PARTS = {
    "gpu_compute_bound": ("kernels and copies", COLORS["computation"]),
    "gpu_communication_bound": ("communication", COLORS["communication"]),
    "gpu_kernel_kernel_overhead": ("gaps between kernels", COLORS["computation+memory"]),
    "gpu_kernel_launch_overhead": ("launch delays", COLORS["runtime call"]),
    "unrecorded": ("unrecorded work", COLORS["unrecorded"]),
    "cpu_bound": ("host", COLORS["operator"]),
    "data_loading": ("data loading", COLORS["data loading"]),
}
"""What bounds an edge ─▶ label and color."""


def critical_path_summary(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw the time of each rank's critical path by what bounds it.

    Args:
        table: Columns of :func:`hta_sql.critical_path.tables.summary_table`.
        percent: True draws only shares of the path, False only times, None both.
    """
    wide = table.pivot_table(
        index=["run", "rank"], columns="bound_by", values="path_ns", aggfunc="sum", observed=True
    )
    stack = Stack(
        title="Where the time of the critical path of each rank goes",
        notes=(
            "The longest chain of operators, kernels and delays that depend on each other. Speeding up",
            "anything that is not on it does not shorten the step.",
        ),
        legend="Bound by",
        whole="the path",
    )
    return themed(stacked_parts(wide.reset_index(), _PARTS, stack, percent=percent))
