"""Matrices: a row per rank, a column per step, collective or time bucket, and a color per value."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import MISSING_COLOR
from hta_sql.charts.drawing.style import WIDTH, marks, subtitled

CELLS = 96
"""Maximum number of rows and columns of a matrix."""


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


def spread(values: list[int], most: int = CELLS) -> list[int]:
    """Return at most ``most`` evenly spread values, including the first and the last."""
    if len(values) <= most:
        return values
    last = len(values) - 1
    return [values[round(at * last / (most - 1))] for at in range(most)]


def filled(column: pd.Series[Any], word: str) -> pd.Series[Any]:
    """Replace missing strings with a word; a column without any string has dtype float."""
    return column.astype(object).where(column.notna(), word)
