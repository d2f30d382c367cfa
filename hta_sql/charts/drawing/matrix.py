"""Matrices: a row per rank, a column per step, collective, time bucket or other rank."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import MISSING_COLOR, ramp
from hta_sql.charts.drawing.style import WIDTH, by_run, headed, marks, shades, subtitled

CELLS = 96
"""Maximum number of rows and columns of a matrix."""

PAIRS = 64
"""Maximum number of ranks of a matrix of pairs; with more, neighboring ranks share a cell."""

SIDE = 420
"""Size of a matrix of pairs along each axis [pixels]."""


def matrix(
    cells: pd.DataFrame,
    color: alt.Color,
    tooltip: dict[str, str],
    *,
    run: str = "",
    **x: Any,
) -> alt.Chart:
    """Draw a cell for each row.

    Args:
        cells: A column ``rank``, and the columns of the encodings.
        color: Color encoding; the background is visible where there is no cell.
        tooltip: Tooltip of a cell in addition to its rank.
        run: Title of the panel, if there are several.
        **x: Encodings of a cell along x.
    """
    rows = max(1, cells["rank"].nunique())
    axis = alt.Axis(labelOverlap=rows > CELLS // 4, ticks=False)
    y = alt.Y("rank:O", title="Rank", axis=axis)
    chart = marks("rect", cells, {"rank": "Rank", **tooltip}, y=y, color=color, **x).properties(
        width=WIDTH,
        height=alt.Step(max(5, min(18, 480 // rows))),
        view=alt.ViewBackground(fill=MISSING_COLOR),
    )
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart


def pair_matrices(
    pairs: pd.DataFrame, title: str, *notes: str, cell: str, color: str, is_sum: bool
) -> alt.TopLevelMixin:
    """Draw a matrix per run: a value from each rank to every other rank.

    Args:
        pairs: ``run, src, dst, cell``; pairs without a row have no cell.
        title: Title of the chart.
        *notes: How to read the chart, one line each.
        cell: Label of the value, with its unit.
        color: Color of high values.
        is_sum: Whether ranks that share a cell are summed, instead of averaged.
    """
    runs, more = by_run(pairs)
    how = "sum" if is_sum else "mean"
    panels = [_pairs(rows, cell, ramp(color), how, run) for run, rows in runs]
    return alt.vconcat(*panels, title=headed(title, *notes, *more))


def _pairs(table: pd.DataFrame, title: str, colors: list[str], how: str, run: str) -> alt.Chart:
    names = sorted({*table["src"], *table["dst"]})
    wide = -(-len(names) // PAIRS)
    place = {name: int(names[at - at % wide]) for at, name in enumerate(names)}
    cells = table.assign(src=table["src"].map(place), dst=table["dst"].map(place))
    cells = cells.groupby(["src", "dst"], as_index=False).agg(cell=("cell", how))
    first = " (first of each cell)" if wide > 1 else ""
    size = alt.Step(max(6, min(28, SIDE // -(-len(names) // wide))))
    axis = alt.Axis(labelOverlap=True, ticks=False, labelAngle=0)
    chart = marks(
        "rect",
        cells,
        {"src": "From", "dst": "To", "cell:,.4~g": title},
        x=alt.X("dst:O", title=f"To rank{first}", axis=axis),
        y=alt.Y("src:O", title=f"From rank{first}", axis=axis),
        color=shades("cell", title, alt.Scale(domainMin=0, range=colors)),
    ).properties(width=size, height=size, view=alt.ViewBackground(fill=MISSING_COLOR))
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart


def spread(values: list[int], most: int = CELLS) -> list[int]:
    """Return at most ``most`` evenly spread values, including the first and the last."""
    if len(values) <= most:
        return values
    last = len(values) - 1
    return [values[round(at * last / (most - 1))] for at in range(most)]


def filled(column: pd.Series[Any], word: str) -> pd.Series[Any]:
    """Replace missing strings with a word; a column without any string has dtype float."""
    return column.astype(object).where(column.notna(), word)
