"""What the GPUs spend their busy time on: classes at once, and the longest kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from hta_sql.charts.style import CLASS_COLOURS, WIDTH, colours, data, duration_unit, order

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["gpu_kernel_types", "gpu_kernels_by_name"]

NAME_CHARACTERS = 60
RANKS_AS_POINTS = 64


def gpu_kernel_types(table: pd.DataFrame) -> alt.Chart:
    """A donut: busy time of all ranks by the classes that run at once.

    Args:
        table: Columns of the analysis ``gpu_kernel_types``.
    """
    totals = table.groupby("classes", as_index=False)[["busy_ns"]].sum()
    totals["part"] = totals["classes"]
    totals["place"] = order(CLASS_COLOURS, totals)
    busy = totals["busy_ns"].sum()
    size, unit = duration_unit(float(busy))
    totals["time"] = totals["busy_ns"] / size
    totals["share"] = totals["busy_ns"] / max(busy, 1)
    ranks = len(table[["run", "rank"]].drop_duplicates())
    title = f"Busy time of {ranks} ranks by class" if ranks != 1 else "Busy time by class"
    shown = {name: CLASS_COLOURS[name] for name in CLASS_COLOURS if name in set(totals["part"])}
    chart: alt.Chart = (
        alt.Chart(
            data(totals[["part", "place", "time", "share"]]), title=title, width=300, height=300
        )
        .mark_arc(innerRadius=70)
        .encode(
            theta=alt.Theta("time:Q", stack=True),
            order=alt.Order("place:Q"),
            color=colours(shown, "Running at once"),
            tooltip=[
                alt.Tooltip("part:N", title="Running at once"),
                alt.Tooltip("time:Q", title=f"Time [{unit}]", format=",.3f"),
                alt.Tooltip("share:Q", title="Share of busy time", format=".1%"),
            ],
        )
    )
    return chart


def gpu_kernels_by_name(table: pd.DataFrame, *, top: int = 10) -> alt.VConcatChart:
    """The longest kernels, one panel per class: bars for the mean over ranks, a dot per rank.

    Args:
        table: Columns of the analysis ``gpu_kernels_by_name``.
        top: Names per class. Above 64 ranks a line from the lowest to the highest rank stands
            for the dots.
    """
    classes = [name for name in CLASS_COLOURS if name in set(table["class"])]
    size, unit = duration_unit(float(table["sum_ns"].max()) if len(table) else 0)
    panels = [_panel(table[table["class"] == name], name, top, size, unit) for name in classes]
    return alt.vconcat(*panels, title="Longest kernels: total time of a rank")


def _panel(
    table: pd.DataFrame, class_: str, top: int, size: float, unit: str
) -> alt.LayerChart | alt.FacetChart:
    names = table.groupby("name")["sum_ns"].sum().sort_values(ascending=False, kind="stable")
    shown = table[table["name"].isin(names.index[:top])]
    points = shown.assign(
        time=shown["sum_ns"] / size,
        short=shown["name"].map(_shortened),
        mean=shown["mean_ns"] / 1e3,
    )
    ranks = len(shown[["run", "rank"]].drop_duplicates())
    # A rank that never ran the kernel spent no time in it: the mean is over all ranks.
    bars = points.groupby("name", as_index=False).agg(
        short=("short", "first"),
        total=("time", "sum"),
        low=("time", "min"),
        high=("time", "max"),
        launches=("kernel_count", "sum"),
    )
    bars["time"] = bars["total"] / max(ranks, 1)
    y = alt.Y(
        "short:N",
        title=None,
        sort=[_shortened(name) for name in names.index[:top]],
        axis=alt.Axis(labelLimit=420),
    )
    tooltip = [
        alt.Tooltip("name:N", title="Kernel"),
        alt.Tooltip("time:Q", title=f"Mean over ranks [{unit}]", format=",.3f"),
        alt.Tooltip("low:Q", title=f"Lowest rank [{unit}]", format=",.3f"),
        alt.Tooltip("high:Q", title=f"Highest rank [{unit}]", format=",.3f"),
        alt.Tooltip("launches:Q", title="Launches"),
    ]
    base = alt.Chart(data(bars[["name", "short", "time", "low", "high", "launches"]]))
    bar = base.mark_bar(color=CLASS_COLOURS[class_], opacity=0.75).encode(
        y=y, x=alt.X("time:Q", title=f"Time [{unit}]"), tooltip=tooltip
    )
    if ranks > RANKS_AS_POINTS:
        detail = base.mark_rule(color="black").encode(y=y, x="low:Q", x2="high:Q", tooltip=tooltip)
    else:
        dots = points[["name", "short", "time", "rank", "kernel_count", "mean"]]
        detail = (
            alt.Chart(data(dots))
            .mark_circle(color="black", size=18, opacity=0.6 if ranks > 1 else 0)
            .encode(
                y=y,
                x="time:Q",
                tooltip=[
                    alt.Tooltip("name:N", title="Kernel"),
                    alt.Tooltip("rank:N", title="Rank"),
                    alt.Tooltip("time:Q", title=f"Total [{unit}]", format=",.3f"),
                    alt.Tooltip("kernel_count:Q", title="Launches"),
                    alt.Tooltip("mean:Q", title="Mean [µs]", format=",.3f"),
                ],
            )
        )
    return alt.layer(bar, detail).properties(title=class_, width=WIDTH)


def _shortened(name: str) -> str:
    """Keep both ends of a name: the arguments at its end often tell instances apart."""
    if len(name) <= NAME_CHARACTERS:
        return name
    return f"{name[: NAME_CHARACTERS - 21]}…{name[-20:]}"
