"""All ranks at once: where it is slow, how busy devices are, one operator on all ranks."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.gaps import by_bucket
from hta_sql.charts.matrix import CELLS, filled, matrix, spread
from hta_sql.charts.palette import (
    CHANGE_COLOURS,
    CLASS_COLOURS,
    NORMAL_COLOUR,
    OUTLIER_COLOUR,
    ramp,
)
from hta_sql.charts.style import (
    MANY,
    WIDTH,
    by_run,
    colours,
    data,
    duration_unit,
    headed,
    label_angle,
    labels,
    marks,
    present,
    shades,
    subtitled,
    told,
    zoom,
)

__all__ = [
    "cluster_overview",
    "operator_across_ranks",
    "special_operators",
    "utilisation_over_time",
]

VERDICTS = {
    "slow rank": OUTLIER_COLOUR,
    "slow everywhere": "#E69F00",
    "as usual": CLASS_COLOURS["computation"],
    "not compared": NORMAL_COLOUR,
}

NAMES = 3
"""So many operators have a panel of their own."""

BANDS = 32
"""Bands go over so many ranks."""

BUCKETS = 4_000
"""So many pieces of time of all ranks are drawn: a browser needs a second."""


def cluster_overview(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A matrix per run: what each rank took for itself in each step, beside the median of all.

    Of many ranks those that are slow most often, or farthest from the median, are shown; of many steps some,
    evenly spread.
    """
    runs, notes = by_run(table)
    # One scale for all runs: equal colours mean equal lateness.
    middles = table.groupby(["run", "step"], dropna=False)["own_ns"].transform("median")
    most = max(0.01, float((table["own_ns"] / middles - 1).abs().max() or 0))
    panels = []
    for run, rows in runs:
        middle = rows.groupby("step", dropna=False)["own_ns"].transform("median")
        cells = rows.assign(
            excess=rows["own_ns"] / middle - 1,
            own=rows["own_ns"] / 1e6,
            step=filled(rows["step"], "whole"),
            verdict=filled(rows["verdict"], "not compared"),
        )
        columns = spread(list(dict.fromkeys(cells["step"])))
        cells = cells[cells["rank"].isin(_slowest(cells)) & cells["step"].isin(columns)]
        change = [CHANGE_COLOURS["shorter"], "white", CHANGE_COLOURS["longer"]]
        scale = alt.Scale(domain=[-most, 0, most], range=change, interpolate="rgb")
        colour = shades("excess", "Beside the median", scale, format="+.0%")
        tooltip = {
            "host_name": "Host",
            "step": "Step",
            "own:,.3f": "Without waiting [ms]",
            "excess:+.1%": "Beside the median",
            "verdict": "Verdict",
        }
        axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
        x = alt.X("step:O", title="Step", sort=columns, axis=axis)
        base = matrix(cells, colour, tooltip, run=run, x=x)
        slow = alt.FieldOneOfPredicate("verdict", ["slow rank", "slow host", "slow stage"])
        dots = base.transform_filter(slow).mark_point(filled=True, size=16, opacity=1)
        panels.append(alt.layer(base, dots.encode(color=alt.value("black"))))
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"The {CELLS} of {ranks:,} ranks that are slow most often.")
    how = "Step without the waits for other ranks, beside the median of the ranks. Dot: slow rank, host or stage."
    return alt.vconcat(*panels, title=headed("Which rank is slow, in which step", how, *notes))


def _slowest(cells: pd.DataFrame) -> set[int]:
    by_rank = cells.assign(far=cells["excess"].abs()).groupby("rank")[["slow_count", "far"]].max()
    ordered = by_rank.sort_values(["slow_count", "far"], ascending=False, kind="stable")
    return set(ordered.index[:CELLS])


def utilisation_over_time(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A matrix per run: how busy each device is over time.

    Of many ranks some are shown, evenly spread; so are pieces of time.
    """
    table, left_out = by_bucket(table)
    size, unit = duration_unit(float((table["start_ns"] + table["dur_ns"]).max()))
    runs, notes = by_run(table)
    notes += left_out
    panels = []
    for run, rows in runs:
        chosen = spread(sorted(rows["rank"].unique()))
        shown = rows[rows["rank"].isin(chosen)]
        wide = -(-(int(rows["bucket"].max()) + 1) // (BUCKETS // len(chosen)))
        cells = (
            shown.assign(at=shown["bucket"] // wide, until=shown["start_ns"] + shown["dur_ns"])
            .groupby(["rank", "at"], as_index=False)
            .agg(
                low=("start_ns", "min"),
                high=("until", "max"),
                busy=("busy_ns", "sum"),
                seen=("observed_ns", "sum"),
            )
        )
        cells = cells[cells["seen"] > 0]
        cells = cells.assign(
            busy=(cells["busy"] / cells["seen"]).astype(float),
            low=cells["low"] / size,
            high=cells["high"] / size,
        )
        scale = alt.Scale(domain=[0, 1], range=ramp("#56B4E9"))
        colour = shades("busy", "Busy", scale, format=".0%")
        x = alt.X(
            "low:Q",
            title=f"Time since the run began [{unit}]",
            axis=alt.Axis(grid=False),
            scale=alt.Scale(zero=False, nice=False),
        )
        tooltip = {
            "low:,.3f": f"From [{unit}]",
            "high:,.3f": f"To [{unit}]",
            "busy:.1%": "Busy",
        }
        panels.append(matrix(cells, colour, tooltip, run=run, x=x, x2="high:Q"))
    if (ranks := table.groupby("run")["rank"].nunique().max()) > CELLS:
        notes.append(f"{CELLS} of {ranks:,} ranks, evenly spread.")
    how = "Share of the time in which a kernel, copy or memset runs. Grey: not captured."
    return alt.vconcat(*panels, title=headed("How busy the devices are over time", how, *notes))


def operator_across_ranks(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A panel per name: each occurrence is a band over the ranks, from its starts to its ends.

    The first run's names with most time are shown; of many ranks those that are slow, and others evenly
    spread.
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
        "Each band is one occurrence: where it leans, ranks come one after another; where it is",
        "wide, it lasts. Drag to move, Ctrl + wheel to zoom, double-click to see all.",
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
        "place:": "Occurrence",
        "low:,.4~g": f"Start [{unit}]",
        "time:,.4~g": f"Time [{unit}]",
        "verdict": "Verdict",
    }
    look = alt.MarkDef("bar", height=5, clip=True, minBandSize=1)
    colour = colours(palette, None, "verdict")
    # A page's choice of a step leaves the other occurrences to compare it with.
    rows = rows.drop(columns="step", errors="ignore")
    bars = marks(look, rows, tooltip, x=x, x2="high:Q", y=y, color=colour)
    band = alt.Chart(bars.data).mark_area(
        orient="horizontal", opacity=0.3, color=NORMAL_COLOUR, clip=True
    )
    tall = max(40, min(240, 26 * rows["rank"].nunique()))
    layers = alt.layer(band.encode(x=x, x2="high:Q", y=y, detail="place:N"), bars)
    return layers.properties(width=WIDTH, height=tall)


def special_operators(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A matrix per run: how often each rank does what; what others do less or more often is marked.

    Of many ranks those that differ from the rank in the middle in most are shown.
    """
    runs, notes = by_run(table)
    panels = []
    for run, rows in runs:
        differs = rows["is_different"].astype(object).eq(True)
        places = rows.assign(differs=differs).groupby("rank")["differs"].sum()
        ordered = places.sort_values(ascending=False, kind="stable")
        kept = rows.assign(differs=differs)[rows["rank"].isin(set(ordered.index[: MANY // 2]))]
        cells = kept[["kind", "rank", "op_count", "differs", "about"]]
        ranks = [str(rank) for rank in sorted(cells["rank"].unique())]
        x = alt.X("rank:O", title="Rank", axis=alt.Axis(labelAngle=label_angle(ranks, 32)))
        base = alt.Chart(data(cells), width=alt.Step(32), height=alt.Step(20)).encode(
            x=x, y=alt.Y("kind:N", title=None, axis=alt.Axis(labelLimit=260))
        )
        boxes = base.mark_rect().encode(
            color=alt.condition("datum.differs", alt.value("#E7C8D3"), alt.value("#F3F5F7")),
            tooltip=told({"rank": "Rank", "op_count:,": "How often", "about": "Why"}),
        )
        texts = base.mark_text(fontSize=11, color="black").encode(
            text=alt.Text("op_count:Q", format=".3~s")
        )
        panel = alt.layer(boxes, texts)
        panels.append(panel.properties(title=subtitled(f"Run {run}")) if run else panel)
        if len(kept["rank"].unique()) < rows["rank"].nunique():
            notes.append(
                f"The {MANY // 2} of {rows['rank'].nunique():,} ranks that differ in most."
            )
    how = "How often each rank does it. Coloured: not as often as the rank in the middle."
    title = headed("What ranks do that matters", how, *dict.fromkeys(notes))
    return alt.vconcat(*panels, title=title)
