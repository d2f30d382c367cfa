"""Figures of operators and annotations: their costs, their kernels, and launch delays."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.names import numbered
from hta_sql.charts.drawing.palette import HOST_COLORS, NEUTRAL_COLOR
from hta_sql.charts.drawing.style import (
    WIDTH,
    bars_by_name,
    by_name,
    data,
    headed,
    labels,
    lane_names,
    mean_and_span,
    of_ranks,
    subtitled,
    tooltips,
    zoom,
)
from hta_sql.text import duration_unit

DELAYS = {
    "launch_delay_ns": ("Operator to launch", HOST_COLORS["operator"]),
    "queue_delay_ns": ("Launch to kernel", NEUTRAL_COLOR),
}


@figure
def user_annotation_breakdown(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw the longest annotations: a bar for the mean of the ranks, a line for the range."""
    ranks = len(table[["run", "rank"]].drop_duplicates())
    rows = table.assign(lane=lane_names(table, "name")).groupby("lane", as_index=False)
    bars = rows.agg(
        total=("sum_ns", "sum"),
        low=("sum_ns", "min"),
        high=("sum_ns", "max"),
        of_ranks=("rank", "nunique"),
        calls=("annotation_count", "sum"),
    )
    # A rank without the annotation spent no time in it: the mean is over all ranks.
    bars["time"] = bars["total"] / max(ranks, 1)
    bars["low"] = bars["low"].where(bars["of_ranks"] == ranks, 0)
    bars = bars.sort_values(["total", "lane"], ascending=[False, True]).head(top)
    size, unit = duration_unit(float(bars["high"].max()) if len(bars) else 0)
    bars[["time", "low", "high"]] /= size
    bars["short"] = labels(bars["lane"])
    tooltip = {
        "lane": "Annotation",
        "time:,.3f": f"Mean of the ranks [{unit}]",
        "low:,.3f": f"Lowest rank [{unit}]",
        "high:,.3f": f"Highest rank [{unit}]",
        "calls:,": "Ranges",
        "of_ranks:,": "Ranks with this annotation",
    }
    columns = ["lane", "short", "time", "low", "high", "calls", "of_ranks"]
    base = Chart(data(bars[columns])).encode(y=by_name(bars), tooltip=tooltips(tooltip))
    x = alt.X("time:Q", title=f"Total duration per rank [{unit}]")
    note = "Sum per rank; each of several nested annotations counts in full."
    if ranks > 1:
        note += f" {of_ranks(ranks)}"
    of_device = "On the device, an annotation lasts until the operations launched in it have ended, so ProfilerSteps overlap."
    title = headed("The longest user annotations", note, of_device)
    chart = mean_and_span(base, x, HOST_COLORS["annotation"], ranks).properties(
        width=WIDTH, title=title
    )
    return chart.add_params(zoom("annotations"))


@figure
def aten_op_kernels_and_delay(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw the most frequent operators with their kernels, and the delay of the first kernel."""
    rows = table.sort_values("call_count", ascending=False, kind="stable").head(top)
    many = len(table[["run", "rank"]].drop_duplicates()) > 1
    lanes = lane_names(rows, *(("rank", "operator_name") if many else ("operator_name",)))
    rows = rows.assign(lane=lanes)
    counted = [f"{lane} ({count:,} calls)" for lane, count in zip(lanes, rows["call_count"])]  # noqa: B905 - both from one table
    rows = rows.assign(short=labels(numbered(counted)))
    panels = [
        _delays(rows, column, part, with_names=place == 0)
        for place, (column, part) in enumerate(DELAYS.items())
    ]
    return alt.hconcat(
        *panels,
        title=headed(
            "Operators and the delay before their first kernel",
            "Mean over the calls. Left: from the start of the operator to its first launch. Right: from this launch to the "
            "start of its kernel.",
        ),
    )


def _delays(
    rows: pd.DataFrame, column: str, part: tuple[str, str], *, with_names: bool
) -> alt.Chart:
    """Draw one panel in its own unit: with a full queue, delays are 1000 times as long as calls."""
    name, color = part
    size, unit = duration_unit(float(rows[column].max()) if len(rows) else 0)
    shown = rows.assign(time=rows[column] / size)
    y = by_name(rows) if with_names else by_name(rows).axis(None)
    tooltip = {
        "lane": "Operator",
        "kernel_sequence": "Launches",
        "call_count:,": "Calls",
        "time:,.3f": f"{name}, mean [{unit}]",
    }
    bars = bars_by_name(shown, alt.X("time:Q", title=f"Mean delay [{unit}]"), tooltip, color, y=y)
    return bars.properties(width=WIDTH // 2, title=subtitled(name)).add_params(zoom(column))
