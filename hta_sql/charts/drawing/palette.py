"""The chart colors: a concept has the same color in all charts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any

from hta_sql.errors import LibraryError

# Okabe and Ito's palette: distinguishable with every kind of color blindness, and in gray.
BLUE, SKY_BLUE, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILION, PURPLE, BLACK = "#E69F00", "#D55E00", "#CC79A7", "#000000"

CLASS_COLORS = {
    "computation": BLUE,
    "communication": VERMILION,
    "memory": GREEN,
    "computation+communication": PURPLE,
    "computation+memory": SKY_BLUE,
    "communication+memory": ORANGE,
    "computation+communication+memory": BLACK,
}

WAIT_COLOR = ORANGE
"""Color of waiting, for other ranks or for the host; amber is used for nothing else."""

IDLE_COLOR = "#B8C0C8"

UNMATCHED_COLOR = "#EFB08E"
"""Color of communication of which it is unknown whether it is transfer or waiting."""

STEP_COLOR = "#C9D1D8"

HOST_COLORS = {
    "annotation": "#B8A1D9",
    "operator": "#88CCEE",
    "runtime call": "#DDCC77",
    "module": "#E0A3C8",
    "Python": "#A8B86B",
    "built-in": "#D3DDB0",
}
"""Kind of host event ─▶ color."""

DATA_LOADING_COLOR = "#AA4499"

PHASE_COLORS = {
    "forward": CLASS_COLORS["computation"],
    "backward": SKY_BLUE,
    "optimizer": "#999933",
}

TENSOR_COLOR = "#44AA99"
"""Color of work on tensor cores."""

PART_COLORS = {
    "computation": CLASS_COLORS["computation"],
    "exposed communication": CLASS_COLORS["communication"],
    "exposed memory": CLASS_COLORS["memory"],
    "idle": IDLE_COLOR,
}

NORMAL_COLOR = "#BBBBBB"

OUTLIER_COLOR = "#882255"
"""Color of outliers of any class: Tol's wine, which no class has."""

NEUTRAL_COLOR = "#7A8793"
"""Color of events without a class: annotations, operations of several classes."""

PALE_COLOR = "#D5DADF"
"""Color of marks that are not highlighted, where a highlight means neither good nor bad."""

CHANGE_COLORS = {"longer": OUTLIER_COLOR, "shorter": "#44AA99"}
"""Colors of the two directions of a change; neither is the color of a class."""

COLORS = {
    **CLASS_COLORS,
    **PART_COLORS,
    **HOST_COLORS,
    **PHASE_COLORS,
    "wait": WAIT_COLOR,
    "unmatched": UNMATCHED_COLOR,
    "data loading": DATA_LOADING_COLOR,
    "unrecorded": "#C9B7E0",
    "neutral": NEUTRAL_COLOR,
    "normal": NORMAL_COLOR,
    "outlier": OUTLIER_COLOR,
    "pale": PALE_COLOR,
    "unknown": NORMAL_COLOR,
}
"""Concept ─▶ color; the charts declared in .sql files name these concepts."""

SERIES_COLORS = (
    *(BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, YELLOW, "#882255"),
    *("#332288", "#999933"),
)
"""Colors of names without a color of their own, by Okabe and Ito, and three by Tol.

They are distinguishable with every kind of color blindness.
"""

ON_COLOR = "#111111"
"""Text color on colored marks; dark mode does not change it."""

MISSING_COLOR = "#C4CACF"
"""Background of a matrix, visible where there is no cell."""

DARK = frozenset({BLUE, BLACK, OUTLIER_COLOR, DATA_LOADING_COLOR})
"""Colors with white text; on all others it is nearly black. Contrasts are at least 4.5."""

_AWAY, _TOWARDS = 0.15, 0.7
"""Share of the color at the pale end of a ramp, and share removed at its deep end."""


def ramp(color: str) -> list[str]:
    """Return a color ramp from low to high: from nearly white over the color to nearly black.

    Dark mode reverses it.
    """
    parts = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    pale = "".join(f"{round(255 - _AWAY * (255 - part)):02X}" for part in parts)
    deep = "".join(f"{round((1 - _TOWARDS) * part):02X}" for part in parts)
    return [f"#{pale}", color, f"#{deep}"]


def named_color(name: str) -> str:
    """Return the color of a concept, or the color itself if it is written ``#RRGGBB``.

    Raises:
        LibraryError: There is no such concept.
    """
    if re.fullmatch("#[0-9A-Fa-f]{6}", name):
        return name
    if name not in COLORS:
        known = ", ".join(COLORS)
        raise LibraryError(f"A chart has the color {name!r}; write #RRGGBB or one of {known}.")
    return COLORS[name]


def named_parts(
    declared: Mapping[str, Any], others: Iterable[str] = ()
) -> dict[str, tuple[str, str]]:
    """Return the label and color of each part of a declared chart, in the declared order.

    Args:
        declared: Part ─▶ its label, or label and color. A label that is a concept has its color.
        others: Further parts, labeled by their names.
    """
    pairs = {key: [part] if isinstance(part, str) else part for key, part in declared.items()}
    pairs |= {key: [key] for key in others if key not in pairs}
    free = cycle(SERIES_COLORS)
    return {
        key: (label, named_color(color[0]) if color else COLORS.get(label) or next(free))
        for key, (label, *color) in pairs.items()
    }
