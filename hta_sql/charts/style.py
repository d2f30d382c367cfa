"""What all charts share: one colour per class, readable times, bars for 1 or 4,096 ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    import pandas as pd

# Okabe and Ito's palette: told apart with every kind of colour blindness, and in grey.
CLASS_COLOURS = {
    "computation": "#0072B2",
    "communication": "#D55E00",
    "memory": "#009E73",
    "computation+communication": "#CC79A7",
    "computation+memory": "#56B4E9",
    "communication+memory": "#E69F00",
    "computation+communication+memory": "#000000",
}
PART_COLOURS = {
    "computation": CLASS_COLOURS["computation"],
    "exposed communication": CLASS_COLOURS["communication"],
    "exposed memory": CLASS_COLOURS["memory"],
    "idle": "#BBBBBB",
}
CAUSE_COLOURS = {"host_wait": "#E69F00", "kernel_wait": "#56B4E9", "other": "#BBBBBB"}

WIDTH = 640
MANY = 40
"""From this many ranks on, bars share a fixed width instead of having one each."""


def data(table: pd.DataFrame) -> alt.InlineData:
    """Hand a small table over inline; altair's own limit of 5,000 rows does not apply to it."""
    plain = table.astype(object).where(table.notna(), None)
    records: list[Any] = plain.to_dict(orient="records")
    return alt.InlineData(values=records)


def colours(palette: dict[str, str], title: str) -> alt.Color:
    """Colour by the field ``part``, in the order and the colours of a palette."""
    scale = alt.Scale(domain=list(palette), range=list(palette.values()))
    return alt.Color("part:N", title=title, scale=scale)


def order(palette: dict[str, str], table: pd.DataFrame) -> list[int]:
    """Number the parts of a table for stacking: legend and stack in the same order."""
    places = {part: place for place, part in enumerate(palette)}
    return [places[part] for part in table["part"]]


def lanes(table: pd.DataFrame, key: str = "lane", title: str = "Rank") -> tuple[alt.X, Any]:
    """Place bars along x: the axis, and the width of the chart."""
    names = list(dict.fromkeys(table[key]))
    axis = alt.Axis(labelAngle=0 if len(names) <= MANY else -90, labelOverlap=True)
    width = alt.Step(max(14, min(70, WIDTH // max(1, len(names))))) if len(names) <= MANY else WIDTH
    return alt.X(f"{key}:N", title=title, sort=names, axis=axis), width


def lane_names(table: pd.DataFrame, *columns: str) -> list[str]:
    """Name lanes by the columns that tell them apart: the run only where there are several."""
    keys = [key for key in ("run", *columns) if key != "run" or len(set(table["run"])) > 1]
    rows = table[keys].itertuples(index=False, name=None)
    return [" / ".join(str(value) for value in row) for row in rows]


def duration_unit(longest_ns: float) -> tuple[float, str]:
    """Choose the unit in which times read well: (ns of one unit, its name)."""
    for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if longest_ns >= size:
            return size, name
    return 1.0, "ns"
