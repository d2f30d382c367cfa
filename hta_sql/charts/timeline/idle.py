"""Draw idle GPU time by host activity."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import COLORS
from hta_sql.charts.drawing.style import (
    bars_by_name,
    by_run,
    colors,
    headed,
    labels,
    present,
    subtitled,
)
from hta_sql.text import duration_unit

CAUSES = {
    "data loading": COLORS["data loading"],
    "synchronization": COLORS["wait"],
    "runtime call": COLORS["runtime call"],
    "host operator": COLORS["operator"],
    "module": COLORS["module"],
    "python": COLORS["Python"],
    "annotation": COLORS["annotation"],
    "device queue": COLORS["neutral"],
    "unrecorded": COLORS["unrecorded"],
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
    bars = bars_by_name(rows, x, tooltip, colors(present(CAUSES, rows["part"]), "Cause"))
    return bars.properties(title=subtitled(f"run {run}" if run else ""), height=alt.Step(20))
