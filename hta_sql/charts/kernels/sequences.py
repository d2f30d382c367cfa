"""Figure of an operator's frequent kernel sequences."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.names import numbered
from hta_sql.charts.drawing.palette import NEUTRAL_COLOR
from hta_sql.charts.drawing.style import bars_by_name, headed, labels, lane_names, zoom
from hta_sql.text import duration_unit


@figure
def frequent_kernel_sequences(table: pd.DataFrame, *, top: int = 5) -> alt.TopLevelMixin:
    """Draw the counts of the most frequent kernel sequences.

    ``top`` applies to each rank.
    """
    rows = table[table["sequence_id"] <= top]
    many = len(rows[["run", "rank"]].drop_duplicates()) > 1
    lanes = lane_names(rows, *(("rank", "name") if many else ("name",)))
    places = [
        f"{place}. {lane}, {count:,} {'op' if count == 1 else 'ops'}"
        for place, lane, count in zip(rows["sequence_id"], lanes, rows["kernel_count"], strict=True)
    ]
    size, unit = duration_unit(float(rows["device_sum_ns"].max()) if len(rows) else 0)
    rows = rows.assign(short=labels(numbered(places)), time=rows["device_sum_ns"] / size)
    tooltip = {
        "pattern": "Sequence",
        "occurrence_count:,": "Calls",
        "kernel_count:,": "Operations",
        "time:,.3f": f"Time on the device [{unit}]",
    }
    x = alt.X("occurrence_count:Q", title="Calls with this sequence")
    bars = bars_by_name(rows, x, tooltip, NEUTRAL_COLOR).add_params(zoom("sequences"))
    title = headed("The most frequent kernel sequences", "Hover over a bar to see its kernels.")
    return bars.properties(title=title)
