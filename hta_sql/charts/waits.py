"""Who waits for whom: the parts of a step, waits of ranks in collectives, who is late."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.bars import Stack, mean_steps, stacked_parts
from hta_sql.charts.matrix import CELLS, matrix
from hta_sql.charts.palette import CLASS_COLOURS, NORMAL_COLOUR, OUTLIER_COLOUR, WAIT_COLOUR, ramp
from hta_sql.charts.style import (
    MANY,
    bars,
    by_run,
    colours,
    duration_unit,
    headed,
    lane_names,
    lanes,
    nothing,
    present,
    shades,
)
from hta_sql.text import counted

__all__ = ["collective_waits", "step_accounting", "stragglers"]

KINDS = 4
"""So many kinds of collectives are named."""

STEP_PARTS = {
    "compute_ns": ("compute", CLASS_COLOURS["computation"]),
    "exposed_transfer_ns": ("transfer", CLASS_COLOURS["communication"]),
    "exposed_wait_ns": ("wait", WAIT_COLOUR),
    "exposed_memory_ns": ("copies", CLASS_COLOURS["memory"]),
    "idle_before_ns": ("idle before", "#8C96A0"),
    "idle_between_ns": ("idle between", "#B8C0C8"),
    "idle_after_ns": ("idle after", "#DDE2E6"),
}
"""Column of ``step_accounting`` ─▶ what people call it, and its colour; in the order of the bar."""


def step_accounting(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per rank: its mean step, in parts that add up to it."""
    stack = Stack(
        title="Where a step goes",
        notes=(
            "Mean of the host's steps of each rank. Transfer, wait for other ranks and copies: while nothing",
            "computes. Idle: before the first operation of the GPU, between operations, after the last.",
        ),
        legend="Part",
        whole="the step",
    )
    return stacked_parts(mean_steps(table, STEP_PARTS), STEP_PARTS, stack, percent=percent)


def collective_waits(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A matrix per run: how long each rank waits in each collective, in the order of their starts.

    Of many ranks those that wait least are shown: one of them is late. Of many collectives, neighbours share
    a cell, which has the mean of their waits.
    """
    known = table[table["wait_ns"].notna()]
    runs, more = by_run(known)
    size, unit = duration_unit(float(known["wait_ns"].max()) if len(known) else 0)
    panels = [_matrix(rows, size, unit, run) for run, rows in runs]
    notes = [
        f"{_counted(known)}; what cannot be judged is left out.",
        "What stands out: the rank waits for others. A row where nothing does: that rank comes last.",
        "Grey: not part of it.",
    ]
    wide = _cell_width(known)
    if wide > 1:
        notes.append(f"Each cell: the mean of {wide} collectives, one behind the other.")
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"The {CELLS} of {ranks:,} ranks that wait least.")
    return alt.vconcat(*panels, title=headed("How long ranks wait in collectives", *notes, *more))


def _counted(known: pd.DataFrame) -> str:
    """Say which collectives these are: how many of each kind."""
    kinds = known.drop_duplicates(["run", "collective_id"])["collective"].fillna("others")
    counts = kinds.value_counts()
    told = ", ".join(f"{count:,} {kind}" for kind, count in counts.head(KINDS).items())
    more = f", {counts[KINDS:].sum():,} others" if len(counts) > KINDS else ""
    return f"The {counted(len(kinds), 'collective')} that ranks meet in: {told}{more}"


def _cell_width(table: pd.DataFrame) -> int:
    """Count the collectives that share a cell, in the run with most of them."""
    most = table.groupby("run")["collective_id"].nunique().max() if len(table) else 1
    return max(1, -(-int(most) // CELLS))


def _matrix(table: pd.DataFrame, size: float, unit: str, run: str) -> alt.Chart:
    totals = table.groupby("rank")["wait_ns"].sum().sort_values(kind="stable")
    shown = table[table["rank"].isin(totals.index[:CELLS])]
    begins = table.groupby("collective_id")["start_ns"].min().sort_values(kind="stable")
    place = {identity: at for at, identity in enumerate(begins.index)}
    wide = _cell_width(table)
    cells = shown.assign(
        x=shown["collective_id"].map(place) // wide,
        wait=shown["wait_ns"].astype(float) / size,
    )
    cells = cells.groupby(["rank", "x"], as_index=False).agg(
        wait=("wait", "mean"), name=("collective", "first")
    )
    cells["at"] = cells["x"] * wide + 1
    wait = f"Wait [{unit}]"
    colour = shades("wait", wait, alt.Scale(domainMin=0, range=ramp(WAIT_COLOUR)))
    tooltip = {"at:": "Collective no.", "name": "Collective", "wait:,.4~g": wait}
    axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
    x = alt.X("at:O", title="Collective, in the order in which they start", axis=axis)
    return matrix(cells, colour, tooltip, run=run, x=x)


def stragglers(table: pd.DataFrame) -> alt.TopLevelMixin:
    """One bar per rank: the wait that it causes to others, as a share of the run.

    Of many ranks the latest are shown.
    """
    title = "Who holds up the others"
    if not table["is_straggler"].notna().any():
        reasons = table["reason"].dropna().unique()
        return nothing(title, f"Nothing can be judged: {'; '.join(reasons)}.")
    ordered = table.sort_values(
        "wait_caused_ns", ascending=False, kind="stable", na_position="last"
    )
    kept = table.loc[sorted(ordered.index[:MANY])]
    size, unit = duration_unit(float(kept["wait_caused_ns"].max()) if len(kept) else 0)
    rows = kept.assign(
        lane=lane_names(kept, "rank"),
        late=kept["is_straggler"]
        .astype(object)
        .map({True: "late", False: "in time"})
        .fillna("not judged"),
        share=kept["wait_caused_pct"].astype(float) / 100,
        time=kept["wait_caused_ns"].astype(float) / size,
        last=kept["last_count"].astype(float) / kept["collective_count"].astype(float),
    )
    x, width = lanes(rows)
    notes = [
        "Time for which others wait because this rank comes last, of the time of those others.",
        "Hidden waits too, so that they would gain less (Cost).",
    ]
    if len(kept) < len(table):
        notes.append(f"The {len(kept)} of {len(table):,} ranks that cause most.")
    palette = {"late": OUTLIER_COLOUR, "in time": NORMAL_COLOUR, "not judged": "#E8E8E8"}
    tooltip = {
        "lane": "Rank",
        "time:,.3f": f"Wait caused [{unit}]",
        "share:.2%": "of their time",
        "last:.1%": "Comes last in",
        "cause": "Cause",
        "subject": "Most in",
    }
    y = alt.Y("share:Q", title="Wait caused", axis=alt.Axis(format="%"))
    colour = colours(present(palette, rows["late"]), None, "late")
    chart = bars(rows, tooltip, colour, x=x, y=y)
    return chart.properties(title=headed(title, *notes), width=width)
