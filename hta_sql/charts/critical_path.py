"""What bounds the critical path of each rank."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.bars import Stack, stacked_bars
from hta_sql.charts.palette import CLASS_COLOURS, DATA_LOADING_COLOUR, HOST_COLOURS
from hta_sql.charts.shown import themed
from hta_sql.charts.style import lane_names

_PARTS = {
    "gpu_compute_bound": ("kernels and copies", CLASS_COLOURS["computation"]),
    "gpu_communication_bound": ("communication", CLASS_COLOURS["communication"]),
    "gpu_kernel_kernel_overhead": ("gaps between kernels", CLASS_COLOURS["computation+memory"]),
    "gpu_kernel_launch_overhead": ("launch delays", HOST_COLOURS["runtime call"]),
    "cpu_bound": ("host", HOST_COLOURS["operator"]),
    "data_loading": ("data loading", DATA_LOADING_COLOUR),
}
"""What bounds an edge ─▶ its name in a legend, its colour."""


def critical_path_summary(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per rank: the time of its critical path by what bounds it.

    Args:
        table: Columns of :func:`hta_sql.critical_path.tables.summary_table`.
        percent: Shares of the path only, times only, or None for both.
    """
    wide = table.pivot_table(
        index=["run", "rank"], columns="bound_by", values="path_ns", aggfunc="sum", observed=True
    )
    wide = wide.reindex(columns=list(_PARTS)).fillna(0).astype("int64").reset_index()
    wide = wide.assign(lane=lane_names(wide, "rank"), place=wide["rank"])
    present = [part for part in _PARTS if not len(wide) or wide[part].any()]
    wide = wide.rename(columns={part: name for part, (name, _) in _PARTS.items()})
    stack = Stack(
        palette=dict(_PARTS[part] for part in present),
        title="What the critical path of each rank spends its time in",
        notes=(
            "The longest chain of operators, kernels and delays that wait for each other. What is not",
            "on it can become faster without the whole becoming faster.",
        ),
        legend="Bound by",
        whole="the path",
    )
    return themed(stacked_bars(wide, stack, percent=percent))
