"""Matrices: a row a rank, a column a step, a collective or a piece of time; a color a number."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import MISSING_COLOR
from hta_sql.charts.drawing.style import WIDTH, marks, subtitled

CELLS = 96
"""A matrix has at most so many columns, and as many rows."""


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
        cells: A column ``rank``, and those that the encodings name.
        color: What stands out, and what does not; where there is no cell, the ground is seen.
        tooltip: What a cell says beside its rank.
        run: Heads the panel, where there are several.
        **x: The encodings of a cell along x.
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
    """Choose so many values, as far apart as they are: the first and the last among them."""
    if len(values) <= most:
        return values
    last = len(values) - 1
    return [values[round(at * last / (most - 1))] for at in range(most)]


def filled(column: pd.Series[Any], word: str) -> pd.Series[Any]:
    """Write a word where a text is missing; a column without any text has floats."""
    return column.astype(object).where(column.notna(), word)
