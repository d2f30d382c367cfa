"""Figures of runs in the order of their captures."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.palette import OUTLIER_COLOUR
from hta_sql.charts.style import (
    colours,
    data,
    duration_unit,
    headed,
    nothing,
    size_unit,
    subtitled,
    told,
)

__all__ = ["kpi_trends"]

WORSE, USUAL, UNKNOWN = OUTLIER_COLOUR, "#0072B2", "#999999"
VERDICTS = ("worse", "as before, or better", "too few runs before")
TITLE = "Figures of runs, beside those before"

FEW_RUNS = 8
"""So many runs have a tick each."""


def kpi_trends(table: pd.DataFrame, *, top: int = 60) -> alt.TopLevelMixin:
    """One panel per figure and job: its value in each run, the median of the runs before, and what is noise.

    ``top`` is of each job: its last runs.
    """
    known = table[table["kpi_value"].notna()]
    if known.empty:
        return nothing(TITLE, "No figure of any run is known.")
    panels = [
        _panel(rows.tail(top).copy(), str(kpi), str(job))
        for (kpi, job), rows in known.groupby(["kpi", "job"], sort=False)
    ]
    notes = (
        "Points: runs in the order of their captures; in the colour of what stands out where one is worse than what the runs before vary by.",
        "Line and band: their median, and how far from it is noise.",
    )
    return alt.concat(*panels, columns=2, title=headed(TITLE, *notes))


def _panel(rows: pd.DataFrame, kpi: str, job: str) -> alt.LayerChart | alt.FacetChart:
    size, unit = 1.0, "%"
    if kpi.endswith("_ns"):
        size, unit = duration_unit(float(rows["kpi_value"].max()))
    elif kpi.endswith("_bytes"):
        size, unit = size_unit(float(rows["kpi_value"].max()))
    rows["place"] = range(1, len(rows) + 1)
    rows["value"] = rows["kpi_value"] / size
    rows["median"] = rows["baseline_median"] / size
    rows["low"] = rows["median"] - rows["tolerance"] / size
    rows["high"] = rows["median"] + rows["tolerance"] / size
    rows["verdict"] = [
        VERDICTS[2] if unknown else VERDICTS[0 if worse else 1]
        for unknown, worse in zip(rows["is_regression"].isna(), rows["is_regression"], strict=True)
    ]
    places = sorted(set(rows["place"]))
    ticks = places if len(places) <= FEW_RUNS else alt.Undefined  # none between two runs
    x = alt.X(
        "place:Q",
        title="Run",
        axis=alt.Axis(tickMinStep=1, format="d", values=ticks),
        scale=alt.Scale(nice=False, padding=8),
    )
    base = alt.Chart(data(rows)).encode(x=x)
    name = kpi.removesuffix("_ns").removesuffix("_pct").removesuffix("_bytes").replace("_", " ")
    y = alt.Y("value:Q", title=f"{name} [{unit}]", scale=alt.Scale(zero=False))
    tooltip = {
        "run": "Run",
        "captured_at": "Captured",
        "git_sha": "Commit",
        "value:,.3f": f"{name} [{unit}]",
        "median:,.3f": "Median before",
        "difference_pct:+.2f": "Difference [%]",
        "verdict": "Verdict",
    }
    palette = dict(zip(VERDICTS, (WORSE, USUAL, UNKNOWN), strict=True))
    colour = colours(palette, "", "verdict", legend=alt.Legend(orient="bottom"))
    band = base.mark_area(opacity=0.15, color=USUAL).encode(
        alt.Y("low:Q", title=f"{name} [{unit}]"), y2="high:Q"
    )
    line = base.mark_line(color=USUAL, opacity=0.6, strokeWidth=1).encode(y="median:Q")
    points = base.mark_circle(size=45, opacity=1).encode(y=y, color=colour, tooltip=told(tooltip))
    return alt.layer(band, line, points).properties(
        title=subtitled(job or name), width=330, height=140
    )
