"""Figure of one operator or kernel on all ranks."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.matrix import filled, spread
from hta_sql.charts.drawing.palette import CLASS_COLORS, NORMAL_COLOR, ORANGE, OUTLIER_COLOR
from hta_sql.charts.drawing.style import (
    WIDTH,
    colors,
    headed,
    labels,
    marks,
    present,
    subtitled,
    zoom,
)
from hta_sql.text import duration_unit

VERDICTS = {
    "slow rank": OUTLIER_COLOR,
    "slow on all ranks": ORANGE,
    "as usual": CLASS_COLORS["computation"],
    "not compared": NORMAL_COLOR,
}

NAMES = 3
"""Maximum number of operators with their own panel."""

BANDS = 32
"""Maximum number of ranks in a panel."""


@figure
def operator_across_ranks(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a panel per name: each occurrence is a band over the ranks, from starts to ends.

    Shows the names with the most time in the first run. If there are many ranks, the slow ranks and
    a sample of the others are shown.
    """
    run = table[table["run"] == table["run"].iloc[0]]
    totals = run.groupby("name")["dur_ns"].sum().sort_values(ascending=False, kind="stable")
    names = list(totals.index[:NAMES])
    ranks = sorted(run["rank"].unique())
    slow = sorted(run[run["verdict"] == "slow rank"]["rank"].unique())[: BANDS // 2]
    chosen = sorted({*slow, *spread(ranks, BANDS - len(slow))})
    shown = run[run["name"].isin(names) & run["rank"].isin(chosen)]
    first = int(shown["start_ns"].min())
    size, unit = duration_unit(float((shown["start_ns"] + shown["dur_ns"]).max() - first))
    bands = shown.assign(
        low=(shown["start_ns"] - first) / size,
        high=(shown["start_ns"] + shown["dur_ns"] - first) / size,
        time=shown["dur_ns"] / size,
        verdict=filled(shown["verdict"], "not compared"),
    )
    palette = present(VERDICTS, bands["verdict"])
    shorter = dict(zip(names, labels(names), strict=True))
    panels = [
        _bands(bands[bands["name"] == name], unit, palette)
        .properties(title=subtitled(shorter[name]))
        .add_params(zoom(f"bands_{at}"))
        for at, name in enumerate(names)
    ]
    notes = [
        "Each band is one occurrence. A slanted band: ranks start one after another. A wide band:",
        "a long duration. Drag to move, Ctrl + wheel to zoom, double-click to see all.",
    ]
    if len(chosen) < len(ranks):
        notes.append(f"{len(chosen)} of {len(ranks):,} ranks.")
    if (more := table["run"].nunique()) > 1:
        notes.append(f"The first of {more} runs.")
    return alt.vconcat(*panels, title=headed("The same operator on all ranks", *notes))


def _bands(
    rows: pd.DataFrame, unit: str, palette: dict[str, str]
) -> alt.LayerChart | alt.FacetChart:
    ranks = [int(rows["rank"].min()), int(rows["rank"].max())]
    y = alt.Y(
        "rank:Q",
        title="Rank",
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
        scale=alt.Scale(domain=[ranks[0] - 0.5, ranks[1] + 0.5], reverse=True, nice=False),
    )
    x = alt.X("low:Q", title=f"Time [{unit}]", scale=alt.Scale(zero=False, nice=False))
    tooltip = {
        "rank": "Rank",
        "position:": "Occurrence",
        "low:,.4~g": f"Start [{unit}]",
        "time:,.4~g": f"Time [{unit}]",
        "verdict": "Verdict",
    }
    look = alt.MarkDef("bar", height=5, clip=True, minBandSize=1)
    color = colors(palette, None, "verdict")
    # The page's step selection must not remove the other occurrences, which serve as comparison.
    rows = rows.drop(columns="step", errors="ignore")
    bars = marks(look, rows, tooltip, x=x, x2="high:Q", y=y, color=color)
    band = Chart(bars.data).mark_area(
        orient="horizontal", opacity=0.3, color=NORMAL_COLOR, clip=True
    )
    tall = max(40, min(240, 26 * rows["rank"].nunique()))
    layers = alt.layer(band.encode(x=x, x2="high:Q", y=y, detail="position:N"), bars)
    return layers.properties(width=WIDTH, height=tall)
