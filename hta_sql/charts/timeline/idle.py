"""Draw idle GPU time by host activity, and by HTA's three causes for each stream."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    CAUSE_COLORS,
    DATA_LOADING_COLOR,
    HOST_COLORS,
    NEUTRAL_COLOR,
    WAIT_COLOR,
)
from hta_sql.charts.drawing.style import (
    MANY,
    bars_by_name,
    by_run,
    colors,
    duration_unit,
    headed,
    labels,
    lane_names,
    present,
    subtitled,
)

COLORS = {
    "data loading": DATA_LOADING_COLOR,
    "synchronization": WAIT_COLOR,
    "runtime call": HOST_COLORS["runtime call"],
    "host operator": HOST_COLORS["operator"],
    "module": HOST_COLORS["module"],
    "python": HOST_COLORS["Python"],
    "annotation": HOST_COLORS["annotation"],
    "device queue": NEUTRAL_COLOR,
    "unrecorded": "#C9B7E0",
    "no event": "#BBBBBB",
    "unknown": "#DDDDDD",
}
"""Cause ─▶ color, in legend order."""


@figure
def idle_causes(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw one bar per cause: the idle time of devices on all ranks, longest first.

    Modules are summed; ``top`` applies to each run.
    """
    keys = ["run", "cause", "relation", "name", "call"]
    rows = table.groupby(keys, as_index=False, dropna=False).agg(
        idle_ns=("idle_ns", "sum"), gaps=("gap_count", "sum"), ranks=("rank", "nunique")
    )
    rows = rows.sort_values(["idle_ns", *keys], ascending=[False] + [True] * 5)
    rows["share"] = rows["idle_ns"] / rows.groupby("run")["idle_ns"].transform("sum")
    rows = rows.groupby("run", sort=False).head(top)
    size, unit = duration_unit(float(rows["idle_ns"].max()) if len(rows) else 0)
    rows["time"] = rows["idle_ns"] / size
    rows["lane"] = [
        _title(*of)
        for of in zip(rows["cause"], rows["relation"], rows["name"], rows["call"], strict=True)
    ]
    runs, more = by_run(rows)
    panels = [_bars(own, unit, run) for run, own in runs]
    notes = (
        "Idle time of the GPUs, summed over all ranks and host steps, by the activity of the host thread that launches next.",
        f"The {top} longest. After a wait: an earlier synchronization had emptied the queue.",
        *more,
    )
    return alt.vconcat(*panels, title=headed("Why GPUs are idle", *notes))


def _title(cause: str, relation: str, name: object, call: object) -> str:
    words = [word for word in (name, call) if isinstance(word, str)]
    return (": ".join(words) or cause) + (" (after a wait)" if relation == "effect" else "")


def _bars(rows: pd.DataFrame, unit: str, run: str) -> alt.Chart:
    # One name can have two causes: each gets its own bar.
    several = rows["lane"].duplicated(keep=False)
    rows = rows.assign(
        lane=rows["lane"].where(~several, rows["lane"] + ", " + rows["cause"]), part=rows["cause"]
    )
    rows = rows.assign(short=labels(rows["lane"]))
    tooltip = {
        "lane": "The host is in",
        "part": "Cause",
        "time:,.3f": f"Idle [{unit}]",
        "share:.1%": "Share of the idle time",
        "gaps:,": "Gaps",
        "ranks:,": "Ranks",
    }
    x = alt.X("time:Q", title=f"Idle time [{unit}]")
    bars = bars_by_name(rows, x, tooltip, colors(present(COLORS, rows["part"]), "Cause"))
    return bars.properties(title=subtitled(f"run {run}" if run else ""), height=alt.Step(20))


@figure
def idle_time_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw the idle time of each device stream by cause.

    With more than 40 streams, a bar is the sum over the streams of a rank.
    """
    # The device identifies streams only if a rank has several devices.
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
    # A stream with a single operation has no idle time between operations.
    wide = wide[wide[list(CAUSE_COLORS)].sum(axis=1) > 0]
    wide = wide.assign(lane=lane_names(wide, *keys), place=wide["rank"])
    what = "the streams of each rank are" if lane_count > MANY else "each stream is"
    stack = Stack(
        palette=CAUSE_COLORS,
        title=f"Why {what} idle",
        notes=(
            f"Sum over {'the streams of a rank' if lane_count > MANY else 'each stream'}, between its operations. host_wait: the host had not launched the next",
            "operation yet. kernel_wait: a short gap in the queue. other: a longer gap, for example a wait for another stream.",
        ),
        legend="Cause",
        whole="the idle time",
        lane=" / ".join(key.capitalize() for key in keys),
    )
    return stacked_bars(wide, stack, percent=percent)
