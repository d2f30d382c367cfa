"""Shared style of all charts: colors, readable times, bars for 1 to 4,096 ranks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart, rows_of
from hta_sql.charts.drawing.names import numbered
from hta_sql.text import CUT, cut_column, cut_middle, printable

WIDTH = 640

TIMELINE_WIDTH = int(1.5 * WIDTH)

RUNS = 6
"""Maximum number of runs with their own panel; a note gives the total."""

LETTER = 6
"""Width of a character of an axis label [pixels]."""

RUN_LENGTH = 24
"""Maximum length of a run's name in a label [characters]."""

MANY = 40
"""Number of ranks above which bars share a fixed total width."""

LABEL_CHARACTERS = 60
"""Maximum length of an axis label [characters]."""

NAME_CHARACTERS = 300
"""Maximum length of a name in a tooltip [characters]; a kernel's name can be 10 kB."""

NAMES = alt.Axis(labelLimit=400, minExtent=400, ticks=False, domain=False)
"""Axis for bars with long names; its fixed extent aligns the panels of a chart."""

ZOOM = "wheel![event.ctrlKey || event.metaKey]"
"""Event that zooms; the wheel alone scrolls the page."""

OWN_COLORS = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
"""For panels that each have their own legend."""

CHAINS = frozenset({"stack", "folded_stack"})
"""Columns with many names in each value."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": "white",
    "padding": 8,
    "title": {
        "anchor": "start",
        "fontSize": 15,
        "subtitleFontSize": 12,
        "subtitleColor": "#555555",
        "subtitlePadding": 5,
        "offset": 10,
    },
    "axis": {
        "gridColor": "#E8E8E8",
        "domainColor": "#999999",
        "tickColor": "#999999",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleColor": "#333333",
        "tickCount": 6,
        "labelSeparation": 5,
    },
    "legend": {"titleFontWeight": "normal", "labelFontSize": 12, "labelLimit": 260},
    "view": {"stroke": None},
    "concat": {"spacing": 24},
}
"""Vega-Lite configuration of all charts."""


def headed(text: str, *lines: str) -> alt.Title:
    """Return the title of a chart, with lines on how to read it."""
    return alt.Title(text, subtitle=list(lines)) if lines else alt.Title(text)


def subtitled(text: str, *lines: str) -> alt.Title:
    """Return the title of one panel of a chart."""
    look: dict[str, Any] = {"fontSize": 13, "offset": 6}
    if lines:
        look |= {"subtitle": list(lines), "subtitleFontSize": 11}
    return alt.Title(text, **look)


def zoom(name: str, *encodings: Literal["x", "y"]) -> alt.Parameter:
    """Return a parameter for dragging, and for zooming with Ctrl + wheel.

    The wheel alone scrolls the page.

    Args:
        name: Unique name of the parameter in the chart.
        *encodings: Axes; default: x.
    """
    return alt.selection_interval(
        name=name, bind="scales", encodings=list(encodings or ("x",)), zoom=ZOOM
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Make the strings in a table safe to draw: escape control characters, truncate long names.

    Different strings stay different. Figures handle the columns in :data:`CHAINS` themselves.
    """
    texts = [k for k, kind in table.dtypes.items() if not (_is_numeric(kind) or k in CHAINS)]
    return table.assign(**{str(key): _readable_column(table[key]) for key in texts})


def _is_numeric(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "iufbmMc"


def _readable_column(column: pd.Series[Any]) -> pd.Series[Any]:
    names = list(dict.fromkeys(value for value in column if isinstance(value, str)))
    shown = dict(zip(names, numbered(map(_readable_name, names)), strict=True))
    return column.map(lambda value: shown[value] if isinstance(value, str) else value)


def _readable_name(name: str) -> str:
    if len(name) > 4 * NAME_CHARACTERS:
        name = name[:NAME_CHARACTERS] + CUT + name[-NAME_CHARACTERS:]
    return cut_middle(printable(name), NAME_CHARACTERS)


def labels(names: Iterable[str]) -> list[str]:
    """Shorten names to axis labels; different names get different labels."""
    texts = list(names)
    different = list(dict.fromkeys(texts))
    cut = numbered(cut_column(different, LABEL_CHARACTERS))
    shown = dict(zip(different, cut, strict=True))
    return [shown[text] for text in texts]


def nothing(title: str, sentence: str) -> alt.TopLevelMixin:
    """Draw a sentence in place of a chart that has no data."""
    look = alt.MarkDef("text", align="left", fontSize=13, color="#555555")
    return (
        Chart(data(pd.DataFrame({"text": [sentence]})), mark=look, title=headed(title))
        .encode(text="text:N", x=alt.value(0), y=alt.value(14))
        .properties(width=WIDTH, height=28)
    )


def data(table: pd.DataFrame) -> alt.InlineData:
    """Return a table as inline data; altair's limit of 5,000 rows does not apply to it."""
    rows: Any = rows_of(table)
    return alt.InlineData(values=rows)


def followed(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Return the columns, plus ``rank`` and ``step`` if present, which the page can filter by."""
    chosen = [name for name in ("rank", "step") if name in table]
    return table[list(dict.fromkeys([*columns, *chosen]))]


def colors(
    palette: Mapping[str, str], title: str | None, field: str = "part", **options: Any
) -> alt.Color:
    """Return a color encoding of a field, with the order and colors of a palette."""
    scale = alt.Scale(domain=list(palette), range=list(palette.values()))
    return alt.Color(f"{field}:N", title=title, scale=scale, **options)


def shades(field: str, title: str, scale: alt.Scale, **legend: Any) -> alt.Color:
    """Return a color encoding of a numeric field."""
    shown = alt.Legend(gradientLength=90, **legend)
    return alt.Color(f"{field}:Q", title=title, scale=scale, legend=shown)


def present(palette: Mapping[str, str], parts: Iterable[object]) -> dict[str, str]:
    """Return the colors of the parts that occur, in palette order."""
    there = set(parts)
    return {part: color for part, color in palette.items() if part in there}


def order(palette: dict[str, str], table: pd.DataFrame) -> list[int]:
    """Return the stacking position of each row's part, consistent with the legend."""
    places = {part: place for place, part in enumerate(palette)}
    return [places[part] for part in table["part"]]


def lanes(table: pd.DataFrame, key: str = "lane", title: str = "Rank") -> tuple[alt.X, Any]:
    """Return the x axis of bars by name, and the width of the chart."""
    names = list(dict.fromkeys(table[key]))
    step = max(14, min(70, WIDTH // max(1, len(names))))
    angle = label_angle(names, step) if len(names) <= MANY else -90
    axis = alt.Axis(labelAngle=angle, labelOverlap=True)
    width = alt.Step(step) if len(names) <= MANY else WIDTH
    # A sort list becomes nested conditions, and 4,096 of them overflow a browser's stack.
    return alt.X(
        f"{key}:N", title=title, sort=names if len(names) <= MANY else None, axis=axis
    ), width


def panel_each(field: str, names: list[str]) -> alt.Row:
    """Return a row encoding: a panel for each name, one below the other, with the name as title."""
    head = alt.Header(labelOrient="top", labelAnchor="start")
    return alt.Row(f"{field}:N", title=None, sort=names, header=head)


def by_name(rows: pd.DataFrame) -> alt.Y:
    """Return the y encoding of bars by the column ``short``, in row order."""
    return alt.Y("short:N", title=None, sort=list(dict.fromkeys(rows["short"])), axis=NAMES)


def tooltips(tooltip: Mapping[str, str]) -> list[alt.Tooltip]:
    """Create a tooltip from fields and their titles.

    The number format follows a colon: ``{"name": "Kernel", "time:,.3f": "Time [ms]"}``.
    """
    return [
        alt.Tooltip(f"{name}:{'Q' if colon else 'N'}", title=title, format=form or alt.Undefined)
        for field, title in tooltip.items()
        for name, colon, form in [field.partition(":")]
    ]


def marks(
    mark: alt.MarkDef | Literal["bar", "rect"],
    rows: pd.DataFrame,
    tooltip: Mapping[str, str],
    **channels: Any,
) -> alt.Chart:
    """Draw a mark for each row; the data has only the columns that the tooltip and channels use."""
    tips = tooltips(tooltip)
    named = [
        channel if isinstance(channel, str) else channel["shorthand"]
        for channel in (*channels.values(), *tips)
    ]
    held = data(followed(rows, [name.partition(":")[0] for name in named]))
    return Chart(held, mark=mark).encode(tooltip=tips, **channels)


def bars(
    rows: pd.DataFrame, tooltip: Mapping[str, str], color: str | alt.Color, **channels: Any
) -> alt.Chart:
    """Draw bars with :func:`marks`, in one color or by a color encoding."""
    if isinstance(color, str):
        return marks(alt.MarkDef("bar", color=color), rows, tooltip, **channels)
    return marks("bar", rows, tooltip, color=color, **channels)


def bars_by_name(
    rows: pd.DataFrame,
    x: alt.X,
    tooltip: Mapping[str, str],
    color: str | alt.Color,
    **channels: Any,
) -> alt.Chart:
    """Draw bars with long names, placed by :func:`by_name`, with :func:`bars`."""
    chart = bars(rows, tooltip, color, **{"y": by_name(rows), "x": x, **channels})
    return chart.properties(width=WIDTH)


def mean_and_span(
    base: alt.Chart, x: alt.X, color: str, ranks: int
) -> alt.LayerChart | alt.FacetChart:
    """Draw bars; if they are means of ranks, add a line from the lowest to the highest rank.

    Args:
        base: Chart with the fields ``low`` and ``high``, without marks.
        x: Encoding of the bar length.
        color: Color of the bars.
        ranks: Number of ranks.
    """
    bar = base.mark_bar(color=color, opacity=0.75).encode(x=x)
    if ranks <= 1:
        return alt.layer(bar)
    span = base.mark_rule(color="black").encode(x="low:Q", x2="high:Q")
    ends = [base.mark_tick(color="black", size=8).encode(x=end) for end in ("low:Q", "high:Q")]
    return alt.layer(bar, span, *ends)


def of_ranks(ranks: int) -> str:
    """Return the note on how to read :func:`mean_and_span`."""
    return f"Bar: mean of {ranks:,} ranks. Line: from the lowest rank to the highest."


def by_run(table: pd.DataFrame) -> tuple[list[tuple[str, pd.DataFrame]], list[str]]:
    """Split a table into panels by run.

    Returns:
        (Name, rows) of the first runs, with an empty name if there is only one; and a note if there
        are more runs than panels.
    """
    runs = list(dict.fromkeys(table["run"]))
    parts = [(run if len(runs) > 1 else "", table[table["run"] == run]) for run in runs[:RUNS]]
    return parts, [f"The first {RUNS} of {len(runs)} runs."] if len(runs) > RUNS else []


def label_angle(names: Iterable[str], step: int) -> int:
    """Return the angle of x labels [degrees]: rotated if they would overlap."""
    longest = max((len(name) for name in names), default=0)
    return 0 if longest * LETTER <= step else -40


def lane_names(table: pd.DataFrame, *columns: str) -> list[str]:
    """Return lane names from the identifying columns, with the run only if there are several."""
    shown = table[list(columns)]
    if "run" in table and len(set(table["run"])) > 1:
        runs = table["run"].map(short_runs(table["run"]))
        shown = pd.concat([runs, shown], axis=1)
    rows = shown.itertuples(index=False, name=None)
    return [" / ".join(map(_lane_part, row)) for row in rows]


def _lane_part(value: object) -> str:
    """Format a stream or rank; a column with missing values has dtype float."""
    if isinstance(value, float):
        return "none" if math.isnan(value) else f"{value:.0f}"
    return str(value)


def short_runs(runs: Iterable[str]) -> dict[str, str]:
    """Shorten run names for labels, keeping them distinct.

    Runs often share a long stem and differ in a few characters.
    """
    names = list(dict.fromkeys(runs))
    short = [cut_middle(name, RUN_LENGTH) for name in names]
    if len(set(short)) < len(names):
        stem = len(os.path.commonprefix(names))  # noqa: RUF071 - these are not paths
        short = [CUT + cut_middle(name[stem:], RUN_LENGTH - 1) for name in names]
    return dict(zip(names, numbered(short), strict=True))
