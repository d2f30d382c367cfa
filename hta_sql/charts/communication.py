"""How much communication hides behind computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from hta_sql.charts.style import CLASS_COLOURS, data, duration_unit, lane_names, lanes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["comm_comp_overlap"]


def comm_comp_overlap(table: pd.DataFrame) -> alt.Chart:
    """One bar per rank: the share of its communication during which it also computes.

    Args:
        table: Columns of the analysis ``comm_comp_overlap``. A rank that does not communicate
            keeps its place without a bar.
    """
    size, unit = duration_unit(float(table["communication_ns"].max()) if len(table) else 0)
    bars = table.assign(
        lane=lane_names(table, "rank"),
        share=table["overlap_pct"] / 100,
        overlapped=table["overlapped_ns"] / size,
        communication=table["communication_ns"] / size,
    )
    x, width = lanes(bars)
    chart: alt.Chart = (
        alt.Chart(
            data(bars[["lane", "share", "overlapped", "communication"]]),
            title="Communication hidden behind computation",
            width=width,
        )
        .mark_bar(color=CLASS_COLOURS["computation+communication"])
        .encode(
            x=x,
            y=alt.Y(
                "share:Q",
                title="Share of communication time",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            tooltip=[
                alt.Tooltip("lane:N", title="Rank"),
                alt.Tooltip("share:Q", title="Overlapped share", format=".2%"),
                alt.Tooltip("overlapped:Q", title=f"Overlapped [{unit}]", format=",.3f"),
                alt.Tooltip("communication:Q", title=f"Communication [{unit}]", format=",.3f"),
            ],
        )
    )
    return chart
