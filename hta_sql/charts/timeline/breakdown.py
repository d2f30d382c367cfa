"""Where GPU time goes, and why streams are idle."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CAUSE_COLORS, PART_COLORS
from hta_sql.charts.drawing.style import MANY, lane_names

_PARTS = {
    "compute_ns": "computation",
    "exposed_communication_ns": "exposed communication",
    "exposed_memory_ns": "exposed memory",
    "idle_ns": "idle",
}


@figure
def temporal_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per rank: computation, exposed communication and memory, idle."""
    wide = table.rename(columns=_PARTS).assign(lane=lane_names(table, "rank"), place=table["rank"])
    stack = Stack(
        palette=PART_COLORS,
        title="Where the time of each GPU goes",
        notes=(
            "From the first to the last operation of each rank. Exposed: nothing computes meanwhile.",
        ),
        legend="GPU time",
        whole="the span",
    )
    return stacked_bars(wide, stack, percent=percent)


@figure
def idle_time_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per device stream: idle time by cause.

    Above 40 streams, a bar is the sum over the streams of a rank.
    """
    # The device tells streams apart only where a rank has several.
    several = len(table) and table.groupby(["run", "rank"])["device"].nunique().max() > 1
    keys = ["rank", "device", "stream"] if several else ["rank", "stream"]
    lane_count = len(table[["run", *keys]].drop_duplicates())
    if lane_count > MANY:
        keys = ["rank"]
    wide = table[["run", *keys]].drop_duplicates()
    for cause in CAUSE_COLORS:
        own = table[table["category"] == cause]
        sums = own.groupby(["run", *keys], dropna=False)["idle_ns"].sum().rename(cause)
        wide = wide.merge(sums.reset_index(), on=["run", *keys], how="left")
    # A stream of one operation is never idle between two.
    wide = wide[wide[list(CAUSE_COLORS)].sum(axis=1) > 0]
    wide = wide.assign(lane=lane_names(wide, *keys), place=wide["rank"])
    what = "the streams of each rank are" if lane_count > MANY else "each stream is"
    stack = Stack(
        palette=CAUSE_COLORS,
        title=f"Why {what} idle",
        notes=(
            f"Sum over {'the streams of a rank' if lane_count > MANY else 'each stream'}, between its operations. host_wait: the host had not launched the next",
            "operation yet. kernel_wait: a short gap in the queue. other: a longer one, for instance a wait for another stream.",
        ),
        legend="Cause",
        whole="the idle time",
        lane=" / ".join(key.capitalize() for key in keys),
    )
    return stacked_bars(wide, stack, percent=percent)
