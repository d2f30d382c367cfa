"""How much communication hides behind computation."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.bars import Stack, stacked_bars
from hta_sql.charts.palette import CLASS_COLOURS
from hta_sql.charts.style import lane_names

__all__ = ["comm_comp_overlap"]

_PALETTE = {
    "hidden": CLASS_COLOURS["computation+communication"],
    "exposed": CLASS_COLOURS["communication"],
}


def comm_comp_overlap(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One bar per rank: communication during which it also computes, and the rest.

    A rank that does not communicate keeps its place without a bar.
    """
    wide = table.assign(
        hidden=table["overlapped_ns"],
        exposed=table["communication_ns"] - table["overlapped_ns"],
        lane=lane_names(table, "rank"),
        place=table["rank"],
    )
    stack = Stack(
        palette=_PALETTE,
        title="Communication hidden behind computation",
        notes=(
            "All communication of each rank. Hidden: the rank computes meanwhile. Exposed: it waits for the data.",
        ),
        legend="Communication",
        whole="communication",
    )
    return stacked_bars(wide, stack, percent=percent)
