"""Draws the charts that analyses declare in their headers.

:mod:`hta_sql.library.chart_header` reads and checks a declaration. Numbers have the unit that the
analysis documents for their column: times, sizes and shares are scaled for reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.declared.bars import by_name, of_ranks
from hta_sql.charts.declared.rows import Declared, declared_rows
from hta_sql.charts.declared.stack import stack
from hta_sql.charts.drawing.matrix import pair_matrices
from hta_sql.charts.drawing.palette import named_color
from hta_sql.charts.drawing.series import distribution, lanes_by, series
from hta_sql.charts.drawing.style import nothing
from hta_sql.charts.drawing.units import scaled
from hta_sql.library.objects import SqlObject

__all__ = ["draw_declared"]


def draw_declared(about: SqlObject, table: pd.DataFrame, **options: Any) -> alt.TopLevelMixin:
    """Draw the chart that an analysis declares.

    Args:
        about: The analysis.
        table: Its rows.
        **options: ``percent`` for stacked bars, ``top`` for bars by name.
    """
    of = declared_rows(about, table)
    return _MARKS[of.chart["mark"]](of, **options)


def _matrix(of: Declared) -> alt.TopLevelMixin:
    """Draw a matrix for each run: a value from each rank to every other rank."""
    value, *sides = (of.text(key) for key in ("value", "from", "to"))
    known = of.table[of.table[[value, *sides]].notna().all(axis=1)]
    if not len(known):
        return nothing(of.title, of.sentence)
    how = of.text("combine", "sum")
    pairs = known.groupby(["run", *sides], as_index=False)[value].agg(how)
    cells, unit, _ = scaled(pairs[value], of.columns[value])
    pairs = pairs.assign(cell=cells).rename(columns=dict(zip(sides, ("src", "dst"), strict=True)))
    color = named_color(of.text("color", "computation+memory"))
    title = f"{of.text('measure')}{unit}"
    return pair_matrices(pairs, of.title, *of.notes, cell=title, color=color, is_sum=how == "sum")


def _line(of: Declared) -> alt.TopLevelMixin:
    """Draw a panel over time for each stream or kind."""
    value = of.text("value")
    whole = alt.Axis(format=",d", tickMinStep=1, tickCount=3)
    return series(
        of.table.assign(lane=lanes_by(of.table, *of.chart["bar"])),
        value,
        of.text("measure"),
        of.title,
        of.color,
        *of.notes,
        axis=whole if of.unit_of(value).type == "BIGINT" else None,
    )


def _box(of: Declared) -> alt.TopLevelMixin:
    """Draw the distribution of a value for each stream or kind."""
    return distribution(
        of.table.assign(lane=lanes_by(of.table, *of.chart["bar"])),
        of.text("statistic"),
        of.text("measure"),
        of.title,
        *of.notes,
        color=of.color,
        unknown=of.sentence,
    )


_MARKS: dict[str, Callable[..., alt.TopLevelMixin]] = {
    "stack": stack,
    "bars": by_name,
    "ranks": of_ranks,
    "matrix": _matrix,
    "line": _line,
    "box": _box,
}
"""Mark ─▶ function that draws it."""
