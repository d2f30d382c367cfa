"""Figure that shows how long each rank waits in each collective."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.matrix import CELLS, matrix
from hta_sql.charts.drawing.palette import WAIT_COLOR, ramp
from hta_sql.charts.drawing.style import by_run, headed, shades
from hta_sql.text import counted, duration_unit

KINDS = 4
"""Maximum number of collective kinds to name."""


@figure
def collective_waits(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: the wait of each rank in each collective, ordered by start.

    If there are many ranks, those that wait least are shown, because stragglers are among them. If
    there are many collectives, neighbors share a cell with the mean of their waits.
    """
    known = table[table["wait_ns"].notna()]
    runs, more = by_run(known)
    size, unit = duration_unit(float(known["wait_ns"].max()) if len(known) else 0)
    panels = [_matrix(rows, size, unit, run) for run, rows in runs]
    notes = [
        f"{_counted(known)}; collectives with unknown waits are omitted.",
        "Strong color: the rank waits for others. A pale row: the rank arrives last.",
        "Gray: the rank does not take part.",
    ]
    wide = _cell_width(known)
    if wide > 1:
        notes.append(f"Each cell: the mean of {wide} consecutive collectives.")
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"The {CELLS} of {ranks:,} ranks that wait least.")
    return alt.vconcat(*panels, title=headed("How long ranks wait in collectives", *notes, *more))


def _counted(known: pd.DataFrame) -> str:
    """Return a note with the number of collectives of each kind."""
    kinds = known.drop_duplicates(["run", "collective_id"])["collective"].fillna("others")
    counts = kinds.value_counts()
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.head(KINDS).items())
    more = f", {counts[KINDS:].sum():,} others" if len(counts) > KINDS else ""
    return f"{counted(len(kinds), 'collective')} of several ranks: {listed}{more}"


def _cell_width(table: pd.DataFrame) -> int:
    """Return how many collectives share a cell in the run with the most collectives."""
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
    color = shades("wait", wait, alt.Scale(domainMin=0, range=ramp(WAIT_COLOR)))
    tooltip = {"at:": "Collective no.", "name": "Collective", "wait:,.4~g": wait}
    axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
    x = alt.X("at:O", title="Collective, in the order in which they start", axis=axis)
    return matrix(cells, color, tooltip, run=run, x=x)
