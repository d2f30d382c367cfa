"""Process groups: what each costs, who sends how much to whom, how links and experts compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_sql.charts.bars import Stack, stacked_bars
from hta_sql.charts.style import lane_names, nothing

if TYPE_CHECKING:
    import altair as alt

__all__ = ["process_group_costs"]

GROUP_COLOURS = (
    ("#D55E00", "#F4C19F"),
    ("#0072B2", "#9FCDE8"),
    ("#009E73", "#9FDCC9"),
    ("#CC79A7", "#EBCBDC"),
    ("#7A8793", "#C6CDD3"),
)
"""Transfer and wait of a group; where there are more, the last one is that of all others."""

SEVERAL, OTHERS = "several groups", "other groups"
SEVERAL_COLOURS = {"transfer": "#000000", "wait": "#555555"}


def process_group_costs(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per rank: its exposed communication, by group, as transfer and wait.

    Args:
        table: Columns of the analysis ``process_group_costs``. Groups of one kind, else of one
            description or name, are one part; the most costly have colours of their own.
        percent: Shares only, times only, or None for both.
    """
    title = "Exposed communication of process groups"
    costs = table.rename(columns={"exposed_transfer_ns": "transfer", "exposed_wait_ns": "wait"})
    costs["label"] = group_labels(table).where(costs["part"] == "group", SEVERAL)
    sums = (
        costs.groupby("label")[["transfer", "wait"]]
        .sum()
        .sum(axis=1)
        .drop(SEVERAL, errors="ignore")
    )
    ordered = sorted(sums[sums > 0].index, key=lambda name: (-sums[name], name))
    named = ordered if len(ordered) <= len(GROUP_COLOURS) else ordered[: len(GROUP_COLOURS) - 1]
    costs["label"] = costs["label"].where(costs["label"].isin([*named, SEVERAL]), OTHERS)
    palette = {
        f"{name}: {part}": colour
        for name, pair in zip([*named, OTHERS], (*GROUP_COLOURS, *GROUP_COLOURS[-1:]), strict=False)
        for part, colour in zip(("transfer", "wait"), pair, strict=True)
    } | {f"{SEVERAL}: {part}": colour for part, colour in SEVERAL_COLOURS.items()}
    costs[["transfer", "wait"]] = costs[["transfer", "wait"]].astype(float).fillna(0)
    tall = costs.melt(["run", "rank", "label"], ["transfer", "wait"], "part", "ns")
    tall["part"] = tall["label"] + ": " + tall["part"]
    wide = tall.pivot_table(
        "ns", ["run", "rank"], "part", aggfunc="sum", fill_value=0
    ).reset_index()
    shown = {part: colour for part, colour in palette.items() if part in wide and wide[part].any()}
    if not shown:
        return nothing(title, "No communication is exposed: all of it runs under computation.")
    stack = Stack(
        palette=shown,
        title=title,
        notes=(
            "Sum of the steps, while nothing computes; several groups: more than one at once.",
            "Wait: for other ranks. Transfer: all have come, or waiting is not known.",
        ),
        legend="Group",
        whole="exposed communication",
    )
    lanes = wide.assign(lane=lane_names(wide, "rank"), place=wide["rank"])
    return stacked_bars(lanes, stack, percent=percent)


def group_labels(table: pd.DataFrame) -> pd.Series[str]:
    """Name groups by what they are for, else by their description or name."""
    known = zip(table["kind"], table["pg_desc"], table["pg_name"], strict=True)
    names = [next((n for n in row if isinstance(n, str) and n), "no name") for row in known]
    return pd.Series(names, index=table.index, dtype=object)
