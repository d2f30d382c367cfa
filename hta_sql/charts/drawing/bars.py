"""Stacked bars, one per rank or stream, as shares and as times."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.palette import DARK, ON_COLOR
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    by_run,
    data,
    followed,
    headed,
    lane_names,
    nothing,
    subtitled,
    tooltips,
    zoom,
)
from hta_sql.text import duration_unit

_PLAIN = re.compile(r"""[^][.'"\\\x00-\x1f\u2028\u2029]+""")

_HALF = 270

_LABELED_SHARE = 0.07

_LABELED_TIME = 0.11
"""Minimum width of a labeled part relative to the panel."""

_STEP_ROWS = 400
"""Maximum number of rows, one per step and rank, that are drawn without averaging steps first."""

_SOLID = 0.7
"""Stroke width of a bar: without it, bars thinner than a pixel look pale."""

Parts = Mapping[str, tuple[str, str]]
"""Column of ns ─▶ label and color, in stacking order."""


@dataclass(frozen=True)
class Stack:
    """Definition of a stacked bar.

    Attributes:
        title: Title of the chart.
        notes: How to read the chart, one line each.
        legend: Title of the legend.
        whole: Quantity that the shares refer to.
        lane: What one bar stands for.
        palette: Part ─▶ color, in stacking order; the table has a column of ns for each.
    """

    title: str
    notes: tuple[str, ...]
    legend: str
    whole: str
    lane: str = "Rank"
    palette: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """Part ─▶ name of its column in the chart data.

        A part with special characters gets a number as its name, because Vega reads ``a.b`` as
        field b of a.
        """
        numbered = enumerate(self.palette)
        return {part: part if _PLAIN.fullmatch(part) else f"part {n}" for n, part in numbered}


def mean_steps(table: pd.DataFrame, parts: Parts, *keys: str) -> pd.DataFrame:
    """Return the mean step of each rank, or of each combination of keys.

    If there are few rows, each step keeps its row, so that the page can average selected steps.
    """
    known = [column for column in parts if column in table]
    lane = ["run", *(keys or ("rank",))]
    few = len(table) <= _STEP_ROWS and len(table.drop_duplicates(lane)) <= MANY
    kept = ["step"] if few and "step" in table and table["step"].notna().any() else []
    return table.groupby([*lane, *kept], as_index=False, dropna=False)[known].mean()


def stacked_parts(
    table: pd.DataFrame,
    parts: Parts,
    stack: Stack,
    lane: Sequence[str] = ("rank",),
    *,
    percent: bool | None = None,
) -> alt.TopLevelMixin:
    """Draw one bar per row, from the parts with nonzero time.

    Args:
        table: ``run``, the columns of ``lane``, the columns of known parts, and ``place`` (position
            of the bar) unless it is the rank. With ``step``, a bar is the mean of its rows.
        parts: The parts.
        stack: Labels of the bar; the function sets its palette.
        lane: Columns that identify a bar.
        percent: True draws only shares, False only times, None both.
    """
    known = {column: about for column, about in parts.items() if column in table}
    times = table[list(known)].astype(float).fillna(0)
    rows = times.rename(columns={column: words for column, (words, _) in known.items()})
    palette = {words: color for words, color in known.values() if rows[words].any()}
    rows = rows.assign(
        run=table["run"],
        lane=lane_names(table, *lane),
        place=table["place" if "place" in table else "rank"],
    )
    for name in ("rank", "step"):
        if name in table:
            rows[name] = table[name]
    return stacked_bars(rows, replace(stack, palette=palette), percent=percent)


def stacked_bars(
    table: pd.DataFrame, stack: Stack, *, percent: bool | None = None
) -> alt.TopLevelMixin:
    """Draw one bar per row: horizontal and labeled for few rows, a zoomable skyline for many.

    Parts without time in any row are omitted from the legend.

    Args:
        table: ``run, lane`` (strings), ``place`` (position along the axis if there are many), and a
            column [ns] for each part of the stack.
        stack: Definition and labels of the bar.
        percent: True draws only shares, False only times, None both.
    """
    stack = replace(stack, palette={p: c for p, c in stack.palette.items() if table[p].any()})
    parts = list(stack.palette)
    if not parts:
        return nothing(stack.title, f"Nothing to show: the time of {stack.whole} is 0.")
    total = table[parts].sum(axis=1)
    size, unit = duration_unit(float(total.max()) if len(table) else 0)
    scaled = table.assign(**{part: table[part] / size for part in parts}, whole=total / size)
    scaled = scaled.rename(columns=stack.columns)
    draw = _few if table["lane"].nunique() <= MANY else _many
    if draw is _few and len(set(table["run"])) > 1:
        stack = replace(stack, lane=f"Run / {stack.lane}")
    wanted = [True, False] if percent is None else [percent]
    return draw(scaled, stack, wanted, unit)


def _few(table: pd.DataFrame, stack: Stack, wanted: list[bool], unit: str) -> alt.TopLevelMixin:
    names = list(dict.fromkeys(table["lane"]))
    source = data(followed(table, ["lane", "whole", *stack.columns.values()]))
    longest = float(table.groupby("lane")["whole"].mean().max())
    averaged = len(names) < len(table)
    panels = []
    for number, percent in enumerate(wanted):
        axis = alt.Axis(labelLimit=260, maxExtent=300) if number == 0 else None
        y = alt.Y("lane:N", sort=names, title=stack.lane if number == 0 else None, axis=axis)
        x = _measure(stack, unit, percent=percent)
        bars = (
            _tall(Chart(), stack, averaged=averaged)
            .mark_bar()
            .encode(y=y, x=alt.X(**x), **_common(stack, unit))
        )
        labels = (
            _tall(Chart(), stack, averaged=averaged)
            # Not filtered, because small parts must keep their space in the stack.
            .transform_calculate(
                label=f"datum.share >= {_LABELED_SHARE} ? format(datum.share, '.0%') : ''"
                if percent
                else f"datum.time >= {_LABELED_TIME * longest} ? format(datum.time, '.3~g') : ''"
            )
            .mark_text(fontSize=11)
            .encode(
                y=y,
                x=alt.X(**x, bandPosition=0.5),
                order=alt.Order("place:Q"),
                detail="part:N",
                text=alt.Text("label:N"),
                color=alt.condition(
                    alt.FieldOneOfPredicate("place", _dark_places(stack)),
                    alt.value("white"),
                    alt.value(ON_COLOR),
                ),
            )
        )
        width = _HALF if len(wanted) > 1 else WIDTH
        panels.append(alt.layer(bars, labels).properties(width=width, height=alt.Step(24)))
    title = headed(stack.title, *stack.notes)
    return alt.hconcat(*panels, data=source, title=title, spacing=30)


def _many(table: pd.DataFrame, stack: Stack, wanted: list[bool], unit: str) -> alt.TopLevelMixin:
    runs, more = by_run(table)
    panels = []
    for at, (run, rows) in enumerate(runs):
        wide = rows[["lane", "place", "whole", *stack.columns.values()]].rename(
            columns={"place": "at"}
        )
        for number, percent in enumerate(wanted):
            x = alt.X(
                "low:Q",
                bin="binned",
                title=stack.lane if number == len(wanted) - 1 else None,
                axis=alt.Axis(format="d", tickMinStep=1, grid=False),
                scale=alt.Scale(
                    domain=[float(wide["at"].min()) - 0.5, float(wide["at"].max()) + 0.5],
                    nice=False,
                ),
            )
            bars = (
                _tall(Chart(data(wide) if number == 0 else alt.Undefined), stack)
                .transform_calculate(low="datum.at - 0.5", high="datum.at + 0.5")
                .mark_bar(clip=True, binSpacing=0, strokeWidth=_SOLID)
                .encode(
                    x=x,
                    x2="high:Q",
                    y=alt.Y(**_measure(stack, unit, percent=percent)),
                    stroke=alt.Stroke(**_colored(stack)),
                    **_common(stack, unit),
                )
                .properties(width=WIDTH, height=180)
                .add_params(zoom(f"shown_{at}_{number}"))
            )
            if number == 0 and run:
                bars = bars.properties(title=subtitled(f"Run {run}"))
            if number:
                bars.data = data(wide)
            panels.append(bars)
    notes = [*stack.notes, "Drag to move, Ctrl + wheel to zoom, double-click to see all.", *more]
    return alt.vconcat(*panels, title=headed(stack.title, *notes))


def _tall(chart: alt.Chart, stack: Stack, *, averaged: bool = False) -> alt.Chart:
    """Fold the part columns into rows in the browser, which takes a quarter of the bytes."""
    if averaged:
        names = ("whole", *stack.columns.values())
        fields: list[dict[str, Any]] = [{"op": "mean", "field": name, "as": name} for name in names]
        means = [alt.AggregatedFieldDef(**field) for field in fields]
        chart = chart.transform_aggregate(means, groupby=["lane"])
    columns = list(stack.columns.values())
    tall: alt.Chart = chart.transform_fold([*columns], as_=["part", "time"]).transform_calculate(
        share="datum.whole > 0 ? datum.time / datum.whole : null",
        place=f"indexof({json.dumps(columns)}, datum.part)",
    )
    if columns != list(stack.palette):
        tall = tall.transform_calculate(part=f"{json.dumps(list(stack.palette))}[datum.place]")
    return tall


def _measure(stack: Stack, unit: str, *, percent: bool) -> dict[str, Any]:
    if percent:
        return {
            "shorthand": "share:Q",
            "stack": "zero",
            "title": f"Share of {stack.whole}",
            "axis": alt.Axis(format="%", tickCount=5),
            "scale": alt.Scale(domain=[0, 1]),
        }
    return {
        "shorthand": "time:Q",
        "stack": "zero",
        "title": f"Time [{unit}]",
        "axis": alt.Axis(tickCount=5),
    }


def _common(stack: Stack, unit: str) -> dict[str, Any]:
    return {
        "color": alt.Color(**_colored(stack)),
        "order": alt.Order("place:Q"),
        "tooltip": tooltips(
            {
                "lane": stack.lane,
                "part": stack.legend,
                "time:,.3f": f"Time [{unit}]",
                "share:.2%": f"Share of {stack.whole}",
                "whole:,.3f": f"{stack.whole} [{unit}]",
            }
        ),
    }


def _colored(stack: Stack) -> dict[str, Any]:
    return {
        "shorthand": "part:N",
        "title": stack.legend,
        "scale": alt.Scale(domain=list(stack.palette), range=list(stack.palette.values())),
        "legend": alt.Legend(orient="bottom", direction="horizontal", titleOrient="left"),
    }


def _dark_places(stack: Stack) -> list[int]:
    return [place for place, color in enumerate(stack.palette.values()) if color in DARK]
