"""Figure of a raw memory timeline, by category."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, YELLOW
from hta_sql.charts.drawing.style import WIDTH, colors, headed, marks, zoom

CATEGORIES = {
    "parameter": BLUE,
    "optimizer state": PURPLE,
    "input": YELLOW,
    "temporary": "#999999",
    "activation": GREEN,
    "gradient": VERMILION,
    "autograd": ORANGE,
    "unknown": BLACK,
}
"""Category ─▶ color, in HTA's order and Okabe and Ito's colors."""

MAX_INSTANTS = 1000
GIB = 1 << 30


def memory_by_category(table: pd.DataFrame) -> alt.Chart:
    """Draw the bytes in use over time as areas stacked by category.

    Args:
        table: Columns of :func:`hta_sql.traces.side_files.memory_timeline`. If there are more than
            1000 instants, each thousandth of the time shows the instant with the most memory, which
            preserves peaks.
    """
    columns = {f"{name.replace(' ', '_')}_bytes": name for name in CATEGORIES}
    total = table[list(columns)].sum(axis=1)
    start, end = (table["ts"].min(), table["ts"].max()) if len(table) else (0, 0)
    bins = ((table["ts"] - start) * MAX_INSTANTS // max(1, end - start)).astype("int64")
    kept = table if len(table) <= MAX_INSTANTS else table.loc[total.groupby(bins).idxmax()]
    tall = kept.rename(columns=columns).melt(
        id_vars="ts", value_vars=list(CATEGORIES), var_name="category", value_name="bytes"
    )
    tall["place"] = tall["category"].map({name: place for place, name in enumerate(CATEGORIES)})
    tall["ms"] = (tall["ts"] - start) / 1e6
    tall["gib"] = tall["bytes"] / GIB
    peak = float(total.max()) / GIB if len(table) else 0
    title = headed("Memory in use by category", f"Peak: {peak:,.3f} GiB.")
    chart = marks(
        alt.MarkDef("area", interpolate="step-after"),
        tall,
        {"category": "Category", "ms:,.3f": "Time [ms]", "gib:,.4f": "In use [GiB]"},
        x=alt.X("ms:Q", title="Time [ms]"),
        y=alt.Y("gib:Q", title="Memory in use [GiB]", stack="zero"),
        color=colors(CATEGORIES, "Category", "category"),
        order=alt.Order("place:Q"),
    )
    return chart.properties(title=title, width=WIDTH).add_params(zoom("instants"))
