"""Figure of the costs of process groups."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    BLACK,
    BLUE,
    CLASS_COLORS,
    GREEN,
    NEUTRAL_COLOR,
    PURPLE,
    UNMATCHED_COLOR,
    WAIT_COLOR,
)
from hta_sql.charts.drawing.style import (
    lane_names,
    nothing,
    present,
)

COST_PARTS = {
    "exposed_transfer_ns": "transfer",
    "exposed_unmatched_ns": "transfer or wait",
    "exposed_wait_ns": "wait",
}
"""Column of ``process_group_costs`` ─▶ label."""

GROUP_COLORS = (
    (CLASS_COLORS["communication"], UNMATCHED_COLOR, WAIT_COLOR),
    (BLUE, "#8AB9DC", "#F2CF80"),
    (GREEN, "#86CDB6", "#C98B00"),
    (PURPLE, "#E6C3D6", "#F9E7C0"),
    (NEUTRAL_COLOR, "#BDC4CA", "#DDB75A"),
)
"""Colors of a group's parts; each wait is a shade of the color of waiting.

If there are more groups than colors, the last one is for all others.
"""

SEVERAL, OTHERS = "several groups", "other groups"

SEVERAL_COLORS = (BLACK, "#777777", "#B07C00")


@figure
def process_group_costs(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw the exposed communication of each rank by group: transfer, unmatched and wait.

    Groups of the same kind form one part; groups of unknown kind are combined by description or
    name. The most expensive parts have their own colors.
    """
    title = "Exposed communication of process groups"
    parts = list(COST_PARTS.values())
    costs = table.rename(columns=COST_PARTS)
    costs["label"] = group_labels(table).where(costs["part"] == "group", SEVERAL)
    sums = costs.groupby("label")[parts].sum().sum(axis=1).drop(SEVERAL, errors="ignore")
    ordered = sorted(sums[sums > 0].index, key=lambda name: (-sums[name], name))
    named = ordered if len(ordered) <= len(GROUP_COLORS) else ordered[: len(GROUP_COLORS) - 1]
    costs["label"] = costs["label"].where(costs["label"].isin([*named, SEVERAL]), OTHERS)
    palette = {
        f"{name}: {part}": color
        for name, tones in zip([*named, OTHERS], (*GROUP_COLORS, *GROUP_COLORS[-1:]), strict=False)
        for part, color in zip(parts, tones, strict=True)
    } | {f"{SEVERAL}: {part}": color for part, color in zip(parts, SEVERAL_COLORS, strict=True)}
    costs[parts] = costs[parts].astype(float).fillna(0)
    tall = costs.melt(["run", "rank", "label"], parts, "part", "ns")
    tall["part"] = tall["label"] + ": " + tall["part"]
    wide = tall.pivot_table(
        "ns", ["run", "rank"], "part", aggfunc="sum", fill_value=0
    ).reset_index()
    shown = present(palette, (part for part in wide.columns if wide[part].any()))
    if not shown:
        return nothing(title, "No communication is exposed: all of it overlaps with computation.")
    stack = Stack(
        palette=shown,
        title=title,
        notes=(
            "Sum over the host's steps of each rank, without time overlapped by computation. Several groups: more than one at once.",
            "Wait: until all ranks of the group have arrived. Transfer: after that. Transfer or wait: not matched with other ranks.",
        ),
        legend="Group",
        whole="exposed communication",
    )
    lanes = wide.assign(lane=lane_names(wide, "rank"), place=wide["rank"])
    return stacked_bars(lanes, stack, percent=percent)


def group_labels(table: pd.DataFrame) -> pd.Series[str]:
    """Return a label for each group: its kind, or else its description or name."""
    known = zip(table["kind"], table["pg_desc"], table["pg_name"], strict=True)
    names = [next((n for n in row if isinstance(n, str) and n), "no name") for row in known]
    return pd.Series(names, index=table.index, dtype=object)
