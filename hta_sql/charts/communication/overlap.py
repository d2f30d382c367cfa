"""Figure of communication overlapped by compute."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_parts
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS

_PARTS = {
    "overlapped_ns": ("overlapped", CLASS_COLORS["computation+communication"]),
    "exposed_ns": ("exposed", CLASS_COLORS["communication"]),
}


@figure
def comm_comp_overlap(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw overlapped and exposed communication per rank.

    A rank that does not communicate keeps its position, without a bar.
    """
    exposed = table["communication_ns"] - table["overlapped_ns"]
    stack = Stack(
        title="Communication overlapped by computation",
        notes=(
            "All communication of each rank. Overlapped: the rank computes at the same time. Exposed: it does not.",
        ),
        legend="Communication",
        whole="communication",
    )
    return stacked_parts(table.assign(exposed_ns=exposed), _PARTS, stack, percent=percent)
