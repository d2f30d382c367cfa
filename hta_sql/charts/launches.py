"""Three histograms of launches: how long kernels and their calls last, and the delay between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from hta_sql.charts.palette import CAUSE_COLOURS, NORMAL_COLOUR
from hta_sql.charts.style import by_run, colours, data, duration_text, headed, subtitled, zoom

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["launch_histograms"]

_PANELS = (
    ("kernel_duration", "Kernel duration", "shorter than their call"),
    ("call_duration", "Duration of the call", "slower than"),
    ("launch_delay", "Delay from call to kernel", "later than"),
)
_PALETTE = {"normal": NORMAL_COLOUR, "outlier": CAUSE_COLOURS["kernel_wait"]}
"""No colour of alarm: a long delay is a queue that is never empty."""
# Round numbers in round units, whatever the decade: 10 ns, 1 µs, 100 ms.
_TIME_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, ',~f') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~f') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~f') + ' µs' : "
    "format(datum.value, '~f') + ' ns'"
)


def launch_histograms(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Per run: kernel durations, call durations and launch delays, outliers in a colour of their own.

    Args:
        table: Columns of the analysis ``launch_histograms``, which counts the bins.
    """
    runs, more = by_run(table)
    rows = []
    for at, (run, own) in enumerate(runs):
        panels = [
            _histogram(own[own["measure"] == key], *names).add_params(zoom(f"{key}_{at}"))
            for key, *names in _PANELS
        ]
        row = alt.hconcat(*panels, spacing=64, bounds="flush")
        rows.append(row.properties(title=subtitled(f"Run {run}")) if run else row)
    count = int(table.loc[table["measure"] == _PANELS[0][0], "launch_count"].sum())
    notes = [
        "What the host calls on all ranks, and what runs on the GPU for it.",
        "Kernels shorter than their call keep the GPU waiting for the host.",
        *more,
    ]
    return alt.vconcat(*rows, title=headed(f"{count:,} launches", *notes))


def _histogram(bins: pd.DataFrame, title: str, outliers: str) -> alt.Chart:
    count, outlying = int(bins["launch_count"].sum()), int(bins["outlier_count"].sum())
    cutoffs = bins["cutoff_ns"].dropna()
    which = outliers + (f" {duration_text(float(cutoffs.iloc[0]))}" if len(cutoffs) else "")
    share = outlying / count if count else 0
    edges = _round_times(float(bins["low_ns"].min()), float(bins["high_ns"].max())) if count else []
    top = 1.08 * float(bins["launch_count"].max()) if count else 1
    tall = bins.assign(
        # A logarithmic axis has no 0: the first bin, below 1 ns, is drawn as half of one.
        low=bins["low_ns"].clip(lower=0.5),
        high=bins["high_ns"],
        normal=bins["launch_count"] - bins["outlier_count"],
        outlier=bins["outlier_count"],
        between=[
            f"{duration_text(low)} – {duration_text(high)}"  # noqa: RUF001 - a span has a dash
            for low, high in zip(bins["low_ns"], bins["high_ns"], strict=True)
        ],
    ).melt(id_vars=["low", "high", "between"], value_vars=list(_PALETTE), var_name="part")
    tall = tall[tall["value"] > 0].rename(columns={"value": "count"})
    chart: alt.Chart = (
        alt.Chart(
            data(tall[["low", "high", "between", "part", "count"]]),
            title=subtitled(title, f"{outlying:,} ({share:.1%}) {which}"),
            width=230,
            height=180,
        )
        .mark_bar(clip=True, binSpacing=0, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "low:Q",
                bin="binned",
                title=None,
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(labelExpr=_TIME_LABEL, values=edges, labelOverlap=True, grid=False),
            ),
            x2="high:Q",
            y=alt.Y(
                "count:Q",
                stack="zero",
                title="Launches",
                axis=alt.Axis(format="~s"),
                scale=alt.Scale(domain=[0, top], nice=False),
            ),
            color=colours(_PALETTE, None, legend=alt.Legend(orient="bottom")),
            order=alt.Order("part:N", sort="descending"),
            tooltip=[
                alt.Tooltip("between:N", title=title),
                alt.Tooltip("part:N", title="Which"),
                alt.Tooltip("count:Q", title="Launches", format=","),
            ],
        )
    )
    return chart


def _round_times(low: float, high: float) -> list[float]:
    """Choose the marks of a logarithmic axis: 1, 10, 100, or 1, 2, 5, 10 where that is too few."""
    powers = [10.0**exponent for exponent in range(19) if low <= 10.0**exponent <= high]
    if len(powers) > 2:
        return powers
    fine = [digit * 10.0**exponent for exponent in range(19) for digit in (1, 2, 5)]
    return [edge for edge in fine if low <= edge <= high]
