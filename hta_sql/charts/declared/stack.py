"""Declared charts of stacked bars: a bar for each rank or other thing, in parts that add up."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.declared.rows import Declared, heading
from hta_sql.charts.drawing.bars import Parts, Stack, mean_steps, stacked_parts
from hta_sql.charts.drawing.palette import named_parts
from hta_sql.charts.drawing.style import MANY


def stack(of: Declared, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw a bar for each rank, stream or category; many streams are summed for each rank.

    Args:
        of: The declared chart.
        percent: True draws only shares, False only times, None what the chart declares.
    """
    chart, keys = of.chart, of.bar
    by_step, by_rank = (chart.get("mean") == of_what for of_what in ("step", "rank"))
    if keys[0] == "rank" and not by_step:
        keys = keys if len(of.table[["run", *keys]].drop_duplicates()) <= MANY else ["rank"]
    rows, parts = _wide(of, keys) if "part" in chart else _with_rest(of)
    if by_step:
        rows = mean_steps(rows, parts, *keys)
    elif "part" not in chart:
        rows = rows.groupby(["run", *keys], as_index=False, dropna=False)[list(parts)].sum()
    if by_rank and len(rows):
        ranks = of.table.groupby("run")["rank"].nunique()
        means = rows[list(parts)].div(rows["run"].map(ranks), axis=0)
        rows = rows.assign(**means, total=means.sum(axis=1))
        rows = rows.sort_values(["total", *keys], ascending=[False, *[True] * len(keys)])
    if keys != ["rank"]:
        rows = rows.assign(place=rows.groupby("run").cumcount())
    about = Stack(
        title=of.title,
        notes=tuple(of.notes),
        legend=of.text("legend"),
        whole=of.text("whole"),
        lane=" / ".join(map(heading, keys)),
    )
    if percent is None and not chart.get("shares", True):
        percent = False
    return stacked_parts(rows, parts, about, keys, percent=percent)


def _wide(of: Declared, keys: list[str]) -> tuple[pd.DataFrame, Parts]:
    """Return a row for each bar with a column for each part; bars without any time are omitted."""
    table = of.table.assign(label=of.labels(of.table))
    wide = table.pivot_table(
        of.text("value"), ["run", *keys], "label", "sum", fill_value=0, dropna=False, observed=True
    )
    parts = {label: (label, color) for label, color in of.parts.values() if label in wide}
    return wide[wide.sum(axis=1) > 0].reset_index(), parts


def _with_rest(of: Declared) -> tuple[pd.DataFrame, Parts]:
    """Return the rows and parts, with the remainder of the total if it is declared as a part."""
    if "rest" not in of.chart:
        return of.table, of.parts
    known = of.table.assign(**of.table[list(of.parts)].astype(float).fillna(0))
    rest = of.table[of.text("total")] - known[list(of.parts)].sum(axis=1)
    return known.assign(rest=rest), of.parts | named_parts({"rest": of.chart["rest"]})
