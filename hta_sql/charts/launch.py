"""Launch figures: durations, delays, and the queue of each stream."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import NEUTRAL_COLOR, PALE_COLOR
from hta_sql.charts.drawing.style import (
    by_run,
    colors,
    headed,
    marks,
    order,
    present,
    subtitled,
    zoom,
)
from hta_sql.text import duration_text, duration_unit

_PANELS = (
    ("kernel_duration", "Kernel duration", "shorter than their call", "others"),
    ("call_duration", "Call duration", "longer than", "up to"),
    ("launch_delay", "Delay from call to kernel", "later than", "up to"),
)
"""Measure, its title, label of its outliers, and label of the other values."""

_AT_ONCE = 3
"""Zero is drawn this factor below the shortest time, because a logarithmic axis has no 0."""

_HALF_BIN = 1.25

# Round numbers in suitable units for every decade: 10 ns, 1 µs, 100 ms.
_TIME_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, ',~f') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~f') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~f') + ' µs' : "
    "format(datum.value, '~f') + ' ns'"
)


@figure
def launch_histograms(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw kernel durations, call durations and launch delays per run, with highlighted outliers.

    The analysis computes the bins.
    """
    runs, more = by_run(table)
    rows = []
    for at, (run, own) in enumerate(runs):
        panels = [
            _histogram(own[own["measure"] == key], *names).add_params(zoom(f"{key}_{at}"))
            for key, *names in _PANELS
        ]
        row = alt.hconcat(*panels, spacing=64, bounds="flush").resolve_scale(color="independent")
        rows.append(row.properties(title=subtitled(f"Run {run}")) if run else row)
    count = int(table.loc[table["measure"] == _PANELS[0][0], "launch_count"].sum())
    notes = [
        "Launch calls of the host on all ranks, and the GPU operations that they launch.",
        "Kernels shorter than their call keep the GPU waiting for the host.",
        "Delay: if long, the queue is never empty and kernels wait in it, which is good; if 0, the kernel starts",
        "before its call ends.",
        *more,
    ]
    return alt.vconcat(*rows, title=headed(f"{count:,} launches", *notes))


def _cutoff_text(ns: float) -> str:
    """Format a cutoff that the user set, without rounding."""
    size, unit = duration_unit(ns)
    return f"{ns / size:g} {unit}"


def _histogram(bins: pd.DataFrame, title: str, outliers: str, others: str) -> alt.Chart:
    count, outlying = int(bins["launch_count"].sum()), int(bins["outlier_count"].sum())
    cutoffs = bins["cutoff_ns"].dropna()
    edge = f" {_cutoff_text(float(cutoffs.iloc[0]))}" if len(cutoffs) else ""
    which = outliers + edge
    palette = {which: NEUTRAL_COLOR, others + edge: PALE_COLOR}
    share = outlying / count if count else 0
    shortest = bins.loc[bins["low_ns"] > 0, "low_ns"].min()
    lowest = 1.0 if pd.isna(shortest) else float(shortest)
    edges = _round_times(lowest, float(bins["high_ns"].max())) if count else []
    if (bins["low_ns"] == 0).any():
        edges = [lowest / _AT_ONCE, *edges]
    top = 1.08 * float(bins["launch_count"].max()) if count else 1
    tall = _tall(bins, palette, lowest / _AT_ONCE)
    below = alt.Legend(orient="bottom", columns=1)
    chart = marks(
        alt.MarkDef("bar", clip=True, binSpacing=0, stroke="white", strokeWidth=0.5),
        tall,
        {"between": title, "part": "Which", "count:,": "Launches"},
        x=alt.X(
            "low:Q",
            bin="binned",
            title=None,
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(
                labelExpr=f"datum.value < {lowest} ? '0' : {_TIME_LABEL}",
                values=edges,
                labelOverlap=True,
                grid=False,
            ),
        ),
        x2="high:Q",
        y=alt.Y(
            "count:Q",
            stack="zero",
            title="Launches",
            axis=alt.Axis(format=",d", tickMinStep=1),
            scale=alt.Scale(domain=[0, top], nice=False),
        ),
        color=colors(present(palette, tall["part"]), None, legend=below),
        order=alt.Order("place:Q"),
    )
    heading = subtitled(title, f"{outlying:,} ({share:.1%}) {which}")
    return chart.properties(title=heading, width=230, height=180)


def _tall(bins: pd.DataFrame, palette: dict[str, str], at_once: float) -> pd.DataFrame:
    """Return a row for each part of a bin; zero gets a position on the logarithmic axis."""
    takes_time = bins["low_ns"] > 0
    parts = (bins["outlier_count"], bins["launch_count"] - bins["outlier_count"])
    tall = bins.assign(
        low=bins["low_ns"].where(takes_time, at_once / _HALF_BIN),
        high=bins["high_ns"].where(takes_time, at_once * _HALF_BIN),
        between=[
            f"{duration_text(low)} – {duration_text(high)}" if low else "0"  # noqa: RUF001 - an en dash in a range
            for low, high in zip(bins["low_ns"], bins["high_ns"], strict=True)
        ],
        **dict(zip(palette, parts, strict=True)),
    ).melt(id_vars=["low", "high", "between"], value_vars=list(palette), var_name="part")
    tall = tall[tall["value"] > 0].rename(columns={"value": "count"})
    return tall.assign(place=order(palette, tall))


def _round_times(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis: 1, 10, 100, or 1, 2, 5, 10 if these are too few."""
    powers = [10.0**exponent for exponent in range(19) if low <= 10.0**exponent <= high]
    if len(powers) > 2:
        return powers
    fine = [digit * 10.0**exponent for exponent in range(19) for digit in (1, 2, 5)]
    return [edge for edge in fine if low <= edge <= high]
