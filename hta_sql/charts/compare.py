"""Two sides of a comparison: what got longer, what came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from hta_sql.charts.style import (
    CHANGE_COLOURS,
    bars_by_name,
    colours,
    duration_unit,
    headed,
    labels,
    nothing,
    zoom,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["trace_diff"]

SIDE_COLOURS = ("#0072B2", "#E69F00", "#BBBBBB")
"""Control, test, difference."""

_GROUP = 30
"""Height of the three bars of an operation."""


def trace_diff(table: pd.DataFrame, *, top: int = 25) -> alt.TopLevelMixin:
    """What changed most in duration: bars to the right got longer, bars to the left shorter."""
    title = "What changed most"
    runs = list(dict.fromkeys(zip(table["control_run"], table["test_run"], strict=True)))
    note = f"{runs[0][1]} against {runs[0][0]}." if runs else "There are no two runs to compare."
    rows = table[table["diff_sum_ns"] != 0].head(top)
    if rows.empty:
        return nothing(title, f"Nothing lasts longer or shorter: {note}")
    size, unit = duration_unit(float(rows["diff_sum_ns"].abs().max()) if len(rows) else 0)
    names = [
        name if category is None or category != category else f"{name} ({category})"  # noqa: PLR0124 - NaN
        for name, category in zip(rows["name"], rows["category"], strict=True)
    ]
    if rows["shapes"].notna().any():
        shapes = rows["shapes"].fillna("")
        names = [f"{name} {shape}" for name, shape in zip(names, shapes, strict=True)]
    rows = rows.assign(
        lane=names,
        short=labels(names),
        diff=rows["diff_sum_ns"] / size,
        control=rows["control_sum_ns"] / size,
        test=rows["test_sum_ns"] / size,
        share=rows["diff_pct"].astype(float) / 100,
        part=["longer" if diff > 0 else "shorter" for diff in rows["diff_sum_ns"]],
    )
    tooltip = {
        "lane": "Operation",
        "control:,.3f": f"Control [{unit}]",
        "test:,.3f": f"Test [{unit}]",
        "diff:+,.3f": f"Difference [{unit}]",
        "share:+.1%": "of the control",
        "control_count:,": "Operations in the control",
        "test_count:,": "Operations in the test",
        "change": "By counts",
    }
    x = alt.X("diff:Q", title=f"Test less control [{unit}]")
    bars = bars_by_name(rows, x, tooltip, colours(CHANGE_COLOURS, "In the test"))
    heading = headed(title, f"{note} Total durations of all wanted ranks.")
    return bars.properties(title=heading).add_params(zoom("difference"))


def side_by_side(
    table: pd.DataFrame, title: str, axis: str, *, format_: str, top: int = 25
) -> alt.TopLevelMixin:
    """Grouped bars: control, test and difference of the operations that differ most.

    Args:
        table: ``name``, then a column for each side, then one for the difference.
        title: What it shows.
        axis: What a bar's length is.
        format_: How the tooltip writes it.
        top: Operations to show.
    """
    _, *sides = (str(column) for column in table.columns)
    names = table.columns[0]
    order = table[sides[-1]].abs().sort_values(ascending=False, kind="stable").index[:top]
    rows = table.loc[order]
    rows = rows.assign(short=labels(rows[names].astype(str)))
    long = rows.melt(id_vars=[names, "short"], value_vars=sides, var_name="part", value_name="size")
    long = long.rename(columns={names: "lane"})
    more = f" The {top} that differ most of {len(table):,}." if len(table) > top else ""
    colour = colours(dict(zip(sides, SIDE_COLOURS, strict=True)), None)
    tooltip = {"lane": "Operation", "part": "Side", f"size:{format_}": axis}
    beside = alt.YOffset("part:N", sort=sides)
    bars = bars_by_name(long, alt.X("size:Q", title=axis), tooltip, colour, yOffset=beside)
    heading = headed(title, f"{sides[1]} against {sides[0]}.{more}")
    high = bars.properties(title=heading, height=alt.Step(_GROUP, **{"for": "position"}))
    return high.add_params(zoom("sides"))
