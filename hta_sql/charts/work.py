"""What kind of work the device does, and how far from its peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta_sql.charts.bars import Stack, stacked_bars
from hta_sql.charts.style import CLASS_COLOURS, NORMAL_COLOUR, lane_names

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

__all__ = ["operator_categories"]

PHASES = {
    "forward": CLASS_COLOURS["computation"],
    "backward": "#56B4E9",
    "optimizer": "#E69F00",
    "not known": NORMAL_COLOUR,
}


def operator_categories(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A bar per kind of work: device time of a rank, by phase; the longest first.

    Args:
        table: Columns of the analysis ``operator_categories``.
    """
    ranks = table.groupby("run")["rank"].nunique()
    rows = table.assign(phase=table["phase"].astype(object).fillna("not known"))
    rows["mean_ns"] = rows["device_ns"] / rows["run"].map(ranks)
    wide = rows.pivot_table("mean_ns", ["run", "category"], "phase", "sum", fill_value=0)
    palette = {phase: colour for phase, colour in PHASES.items() if phase in wide}
    wide["total"] = wide[list(palette)].sum(axis=1)
    wide = wide.sort_values(["total", "category"], ascending=[False, True]).reset_index()
    note = "Device time of each rank, mean of the ranks" if ranks.max() > 1 else "Device time"
    stack = Stack(
        palette=palette,
        title="What kind of work the device does",
        notes=(f"{note}; by the operator that launched it, else by the kernel's name.",),
        legend="Phase",
        whole="the category",
        lane="Category",
    )
    named = wide.assign(lane=lane_names(wide, "category"), place=range(len(wide)))
    return stacked_bars(named, stack, percent=False)
