"""Colors: one for each thing, in all charts."""

from __future__ import annotations

# Okabe and Ito's palette: told apart with every kind of color blindness, and in gray.
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
"""Waiting, for other ranks or for the host: amber is nothing else."""

IDLE_COLOR = "#B8C0C8"

STEP_COLOR = "#C9D1D8"

HOST_COLORS = {
    "annotation": "#B8A1D9",
    "operator": "#88CCEE",
    "runtime call": "#DDCC77",
    "module": "#E0A3C8",
    "Python": "#A8B86B",
    "built in": "#D3DDB0",
}
"""What the host is in."""

DATA_LOADING_COLOR = "#AA4499"

PHASE_COLORS = {
    "forward": CLASS_COLORS["computation"],
    "backward": SKY_BLUE,
    "optimizer": "#999933",
}

TENSOR_COLOR = "#44AA99"
"""On tensor cores, which is as it should be."""

PART_COLORS = {
    "computation": CLASS_COLORS["computation"],
    "exposed communication": CLASS_COLORS["communication"],
    "exposed memory": CLASS_COLORS["memory"],
    "idle": IDLE_COLOR,
}

CAUSE_COLORS = {"host_wait": WAIT_COLOR, "kernel_wait": SKY_BLUE, "other": "#BBBBBB"}

NORMAL_COLOR = "#BBBBBB"

OUTLIER_COLOR = "#882255"
"""What stands out, of any class: Tol's wine, which no class has."""

NEUTRAL_COLOR = "#7A8793"
"""What has no class: annotations, operations of several classes."""

PALE_COLOR = "#D5DADF"
"""What stands beside what is pointed out in the neutral color, where neither is good or bad."""

CHANGE_COLORS = {"longer": OUTLIER_COLOR, "shorter": "#44AA99"}
"""Two sides of a comparison; neither is the color of a class."""

ON_COLOR = "#111111"
"""Ink on colored marks: a page in the dark leaves it as it is."""

MISSING_COLOR = "#C4CACF"
"""Ground of a map: where it is seen, there is no cell."""

DARK = frozenset({BLUE, BLACK, OUTLIER_COLOR, DATA_LOADING_COLOR})
"""Colors on which text is white; on all others it is nearly black: contrasts of 4.5 and more."""

_AWAY, _TOWARDS = 0.15, 0.7
"""Shares of a color that the pale end of a ramp has, and that its deep end lacks."""


def ramp(color: str) -> list[str]:
    """Go from little to much by a color: from nearly paper to nearly ink. A page in the dark turns it round."""
    parts = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    pale = "".join(f"{round(255 - _AWAY * (255 - part)):02X}" for part in parts)
    deep = "".join(f"{round((1 - _TOWARDS) * part):02X}" for part in parts)
    return [f"#{pale}", color, f"#{deep}"]
