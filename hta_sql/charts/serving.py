"""Serving figures: an engine's iterations over time, and their device time by kind of work."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS, IDLE_COLOR, NORMAL_COLOR
from hta_sql.charts.drawing.style import WIDTH, bars, colors, headed, present
from hta_sql.text import duration_unit

PHASES = {
    "prefill": "#0072B2",
    "mixed": "#CC79A7",
    "decode": "#009E73",
    "speculative": "#56B4E9",
    "idle": IDLE_COLOR,
    "unknown": NORMAL_COLOR,
}
"""Phase of an iteration ─▶ color."""

LAYER_PARTS = {
    "attention_ns": ("attention", "#AA4499"),
    "gemm_ns": ("products", CLASS_COLORS["computation"]),
    "moe_ns": ("experts", "#009E73"),
    "communication_ns": ("communication", CLASS_COLORS["communication"]),
    "norm_ns": ("normalization", "#66A61E"),
    "other_ns": ("other", "#DDE2E6"),
}
"""Column of ``iteration_layers`` ─▶ label and color, in stacking order."""

_PANELS = (
    ("device", "Device time"),
    ("request_count", "Requests"),
    ("context_tokens", "Context [tokens]"),
)
"""Column ─▶ title of its axis; each column with known values has a panel."""

_MOST = 2_000
"""Maximum number of iterations of a rank to draw, starting with the first."""


@figure
def iterations(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a bar per iteration of the first rank: time, requests and context, colored by phase."""
    first = table[(table["run"] == table["run"].iloc[0]) & (table["rank"] == table["rank"].iloc[0])]
    rows = first.head(_MOST)
    size, unit = duration_unit(float(rows["device_ns"].fillna(0).max()))
    phases = rows["phase"].astype(object).fillna("unknown")
    rows = rows.assign(phase=phases, device=rows["device_ns"] / size)
    palette = present(PHASES, set(rows["phase"]))
    x = alt.X("iteration:O", title="Iteration", axis=alt.Axis(labelOverlap=True, labelAngle=0))
    tooltip = {"iteration": "Iteration", "phase": "Phase", "device:,.3~f": f"Device [{unit}]"}
    color = colors(palette, "Phase", "phase")
    panels = []
    for column, says in _PANELS:
        if not rows[column].notna().any():
            continue
        y = alt.Y(f"{column}:Q", title=f"{says} [{unit}]" if column == "device" else says)
        known = rows[["iteration", "phase", "device", *({column} - {"device"})]]
        panel = bars(known, tooltip, color, x=x, y=y)
        panels.append(panel.properties(width=WIDTH, height=140))
    notes = [f"Rank {rows['rank'].iloc[0]}, without unrecorded time."]
    if len(rows) < len(first):
        notes.append(f"The first {len(rows):,} of {len(first):,} iterations.")
    return alt.vconcat(*panels, title=headed("Serving iterations", *notes))


@figure
def iteration_layers(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw a bar per layer of the model, by kind of work: the mean iteration of the first rank.

    Of several phases and numbers of layers, the one with the most time is drawn.
    """
    first = table[(table["run"] == table["run"].iloc[0]) & (table["rank"] == table["rank"].iloc[0])]
    phases = first["phase"].astype(object).fillna("unknown")
    key = pd.Series([*zip(phases, first["layer_count"], strict=True)], index=first.index)
    most = first.groupby(key)["busy_ns"].sum().idxmax()
    rows = first[key == most]
    names = {column: name for column, (name, _) in LAYER_PARTS.items()}
    parts = rows[list(names)].div(rows["iteration_count"], axis=0).rename(columns=names)
    numbers = rows["layer"].astype(float).fillna(0).astype(int)
    lanes = rows["part"].where(rows["part"] != "layer", numbers.astype(str))
    stack = Stack(
        title="Time of each layer of the model",
        notes=(
            f"Mean iteration of rank {rows['rank'].iloc[0]}, phase {most[0]}. Before and after: outside of the layers.",
        ),
        legend="Work",
        whole="the layer",
        lane="Layer",
        palette=dict(LAYER_PARTS.values()),
    )
    wide = parts.assign(run=rows["run"], lane=lanes, place=range(len(rows)))
    return stacked_bars(wide, stack, percent=False if percent is None else percent)
