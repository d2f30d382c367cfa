"""Figures of busy time: classes of work, and the longest kernels."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS, ramp
from hta_sql.charts.drawing.style import (
    OWN_COLORS,
    WIDTH,
    by_name,
    by_run,
    colors,
    data,
    headed,
    label_angle,
    labels,
    lane_names,
    marks,
    mean_and_span,
    of_ranks,
    order,
    shades,
    subtitled,
    tooltips,
)
from hta_sql.text import duration_text, duration_unit

TOTALS = "Total duration of all launches with that name."

RANKS_AS_CELLS = 64

_LABELED_SHARE = 0.02

_LEAST_SHARE = 0.001
"""Smallest share that is shown as a number."""


@figure
def gpu_kernel_types(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a donut per run: busy time of its ranks by the classes that run concurrently."""
    runs, more = by_run(table)
    notes = [
        "Sum over all ranks. Classes joined by + run at the same time on different streams.",
        *more,
    ]
    title = headed("What the GPUs run while they are busy", *notes)
    return alt.hconcat(*(_donut(rows, run) for run, rows in runs), title=title, resolve=OWN_COLORS)


def _share_text(share: float) -> str:
    """Format a share; a nonzero share is never shown as 0 %."""
    return (
        f"{100 * share:.1f} %"
        if share >= _LEAST_SHARE or not share
        else f"< {100 * _LEAST_SHARE:.1f} %"
    )


def _donut(table: pd.DataFrame, run: str) -> alt.LayerChart | alt.FacetChart:
    totals = table.groupby("classes", as_index=False)[["busy_ns"]].sum()
    totals["part"] = totals["classes"]
    totals["place"] = order(CLASS_COLORS, totals)
    busy = float(totals["busy_ns"].sum())
    size, unit = duration_unit(busy)
    totals["time"] = totals["busy_ns"] / size
    totals["share"] = totals["busy_ns"] / max(busy, 1)
    totals["label"] = [
        f"{_share_text(share)} {part}"
        for part, share in zip(totals["part"], totals["share"], strict=True)
    ]
    totals = totals.sort_values("place")
    ranks = len(table["rank"].drop_duplicates())
    base = Chart(data(totals[["part", "label", "place", "time", "share"]])).encode(
        theta=alt.Theta("time:Q", stack=True),
        order=alt.Order("place:Q"),
        tooltip=tooltips(
            {
                "part": "Running at the same time",
                "time:,.3f": f"Time [{unit}]",
                "share:.2%": "Share of busy time",
            }
        ),
    )
    # The legend repeats the shares, because thin slices have no space for labels.
    palette = {
        label: CLASS_COLORS[part]
        for label, part in zip(totals["label"], totals["part"], strict=True)
    }
    ring = base.mark_arc(innerRadius=70, outerRadius=120, stroke="white").encode(
        color=colors(
            palette,
            "Running at the same time",
            "label",
            legend=alt.Legend(orient="right", labelLimit=0),
        )
    )
    shares = (
        base.transform_filter(f"datum.share >= {_LABELED_SHARE}")
        .mark_text(radius=138, fontSize=12)
        .encode(text=alt.Text("share:Q", format=".1%"))
    )
    middle = Chart(data(totals[["part"]].head(1)))
    total = middle.mark_text(fontSize=18, dy=-7).encode(text=alt.value(duration_text(busy)))
    what = f"busy, {ranks:,} ranks" if ranks != 1 else "busy"
    below = middle.mark_text(fontSize=12, dy=13, color="#555555").encode(text=alt.value(what))
    donut = alt.layer(ring, shares, total, below).properties(width=300, height=300)
    return donut.properties(title=subtitled(f"Run {run}")) if run else donut


@figure
def kernels_across_ranks(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the longest kernels of each class: bars for the mean over ranks, lines for the range."""
    size, unit = duration_unit(float(table["max_rank_ns"].max()) if len(table) else 0)
    ranks = int(table["rank_count"].max()) if len(table) else 0
    rows = table.assign(
        time=table["mean_rank_ns"] / size,
        low=table["min_rank_ns"] / size,
        high=table["max_rank_ns"] / size,
        share=table["class_pct"] / 100,
        spread=table["spread_pct"] / 100,
        lane=table["name"],
    )
    runs, more = by_run(rows)
    panels = [
        _bars_with_spans(own[own["class"] == class_], class_, ranks, unit, run=run)
        for run, own in runs
        for class_ in CLASS_COLORS
        if (own["class"] == class_).any()
    ]
    notes = [of_ranks(ranks) if ranks > 1 else TOTALS, *more]
    return alt.vconcat(*panels, title=headed("The longest kernels", *notes))


def _bars_with_spans(
    rows: pd.DataFrame, class_: str, ranks: int, unit: str, *, run: str = ""
) -> alt.LayerChart | alt.FacetChart:
    rows = rows.assign(short=labels(rows["lane"]))
    columns = ["lane", "short", "time", "low", "high", "share", "kernel_count"]
    tooltip = {
        "lane": "Kernel",
        "time:,.3f": f"Mean of the ranks [{unit}]",
        "share:.1%": f"Share of all {class_}",
        "kernel_count:,": "Launches on all ranks",
    }
    if ranks > 1:
        columns += ["spread", "min_rank", "max_rank"]
        tooltip |= {
            "low:,.3f": f"Lowest rank [{unit}]",
            "min_rank:d": "Lowest is rank",
            "high:,.3f": f"Highest rank [{unit}]",
            "max_rank:d": "Highest is rank",
            "spread:.1%": "(highest - lowest) / mean",
        }
    base = Chart(data(rows[columns])).encode(y=by_name(rows), tooltip=tooltips(tooltip))
    x = alt.X("time:Q", title=f"{'Time of a rank' if ranks > 1 else 'Total time'} [{unit}]")
    return mean_and_span(base, x, CLASS_COLORS[class_], ranks).properties(
        title=subtitled(f"{class_}, run {run}" if run else class_), width=WIDTH, height=alt.Step(20)
    )


@figure
def gpu_kernels_by_name(table: pd.DataFrame, *, top: int = 10) -> alt.TopLevelMixin:
    """Draw the longest kernels of each class as a heat map with one column per rank.

    ``top`` is the number of names per class, those with the longest totals. With more than 64
    ranks, the chart is drawn as in :func:`kernels_across_ranks`.
    """
    # The sum of all other names would dwarf each single name.
    table = table[table["name"] != "others"]
    rows = table.assign(lane=lane_names(table, "rank"))
    lanes = list(dict.fromkeys(rows["lane"]))
    classes = [name for name in CLASS_COLORS if name in set(table["class"])]
    size, unit = duration_unit(float(table["sum_ns"].max()) if len(table) else 0)
    few = 1 < len(lanes) <= RANKS_AS_CELLS
    panels = []
    for name in classes:
        own = rows[rows["class"] == name]
        own = own.assign(
            time=own["sum_ns"] / size,
            mean=own["mean_ns"] / 1e3,
            share=own["sum_ns"] / max(float(own["sum_ns"].sum()), 1),
        )
        own = _longest(own, top)
        panels.append(_cells(own, name, lanes, unit) if few else _bars(own, name, len(lanes), unit))
    note = of_ranks(len(lanes)) if len(lanes) > 1 else TOTALS
    if few:
        note = "One column per rank; strong color: long. Ranks with equal work have equal shades."
    title = headed("The longest kernels of each rank", note)
    return alt.vconcat(*panels, title=title, resolve=OWN_COLORS)


def _longest(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the names with the longest totals, longest first."""
    totals = table.groupby("name", sort=True)["sum_ns"].sum()
    names = list(totals.sort_values(ascending=False, kind="stable").index[:top])
    short = dict(zip(names, labels(names), strict=True))
    kept = table[table["name"].isin(names)]
    kept = kept.assign(short=kept["name"].map(short), place=kept["name"].map(names.index))
    return kept.sort_values(["place", "run", "rank"], kind="stable")


def _cells(rows: pd.DataFrame, class_: str, lanes: list[str], unit: str) -> alt.Chart:
    step = max(14, min(46, WIDTH // len(lanes)))
    axis = alt.Axis(labelAngle=label_angle(lanes, step), labelOverlap=True)
    scale = alt.Scale(domainMin=0, range=ramp(CLASS_COLORS[class_]))
    tooltip = {
        "name": "Kernel",
        "lane": "Rank",
        "time:,.3f": f"Total [{unit}]",
        "kernel_count:,": "Launches",
        "mean:,.3f": "Mean [µs]",
    }
    return marks(
        alt.MarkDef("rect", stroke="white", strokeWidth=1),
        rows,
        tooltip,
        x=alt.X("lane:N", title="Rank", sort=lanes, axis=axis),
        y=by_name(rows),
        color=shades("time", f"Time [{unit}]", scale),
    ).properties(title=subtitled(class_), width=alt.Step(step), height=alt.Step(20))


def _bars(
    rows: pd.DataFrame, class_: str, ranks: int, unit: str
) -> alt.LayerChart | alt.FacetChart:
    names = rows.groupby(["place", "name"], as_index=False).agg(
        total=("time", "sum"),
        low=("time", "min"),
        high=("time", "max"),
        present=("time", "size"),
        kernel_count=("kernel_count", "sum"),
        share=("share", "sum"),
    )
    # A rank without the kernel spent no time in it.
    low = names["low"].where(names["present"] == ranks, 0)
    bars = names.assign(lane=names["name"], time=names["total"] / max(ranks, 1), low=low)
    return _bars_with_spans(
        bars.assign(spread=None, min_rank=None, max_rank=None), class_, ranks, unit
    )
