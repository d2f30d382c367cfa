"""Figure that shows a hang: the last collectives of stuck process groups, rank by rank."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.matrix import CELLS, filled, matrix
from hta_sql.charts.drawing.palette import (
    BLACK,
    MISSING_COLOR,
    OUTLIER_COLOR,
    PALE_COLOR,
    PURPLE,
    SKY_BLUE,
    WAIT_COLOR,
    YELLOW,
)
from hta_sql.charts.drawing.style import colors, headed, present, subtitled

GROUPS = 4
"""Maximum number of stuck groups with a panel, those with the cause first."""

STATES = {
    "finished": PALE_COLOR,
    "waiting": WAIT_COLOR,
    "ended": YELLOW,
    "missing": OUTLIER_COLOR,
    "different": PURPLE,
    "not started": SKY_BLUE,
    "no dump": BLACK,
    "unknown": MISSING_COLOR,
}
"""State of a cell ─▶ color."""


@figure
def hang_grid(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per stuck group: what each rank did at each of the last collectives.

    Groups blocked by ranks that wait in no other group come first. If there are many ranks, those
    with the rarest rows are shown, because the blocking ranks are among them. If there are many
    collectives, the last ones are shown.
    """
    cells = table.assign(is_cause=table["is_culprit"].astype(bool))
    cells["is_blocked"] = cells["is_stuck"] & cells["state"].eq("missing") & ~cells["is_cause"]
    by_group = cells.groupby(["run", "channel"], sort=False)
    counts = by_group[["is_cause", "is_blocked"]].sum()
    order = counts.assign(has_cause=counts["is_cause"] > 0).sort_values(
        ["has_cause", "is_blocked"], ascending=[False, True], kind="stable"
    )
    palette = present(STATES, table["state"])
    several = len(set(table["run"])) > 1
    panels = [
        _panel(by_group.get_group(key), f"{key[0]}: {key[1]}" if several else key[1], palette)
        for key in order.index[:GROUPS]
    ]
    notes = ["Dot: a rank that holds up its group. The last column is the collective in question."]
    if len(order) > GROUPS:
        notes.append(
            f"{GROUPS} of {len(order):,} stuck groups, starting with those that contain the cause."
        )
    if (ranks := by_group["rank"].nunique().max()) > CELLS:
        notes.append(f"{CELLS} of {ranks:,} ranks of a group, those with the rarest rows.")
    return alt.vconcat(*panels, title=headed("Collectives of stuck groups, rank by rank", *notes))


def _panel(table: pd.DataFrame, name: str, palette: dict[str, str]) -> Any:
    """Draw the collectives of one group."""
    numbers = sorted(table["collective_seq_id"].unique())[-CELLS:]
    rows = table[table["collective_seq_id"].isin(numbers)]
    cells = rows[rows["rank"].isin(_rarest(rows))].assign(
        op=filled(rows["op"], "none"), cause=rows["is_cause"].map({True: "yes", False: "no"})
    )
    tooltip = {
        "collective_seq_id:": "Collective no.",
        "op": "Operation",
        "state": "State",
        "cause": "Blocks the others",
    }
    axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
    x = alt.X("collective_seq_id:O", title="Number of the collective in its group", axis=axis)
    base = matrix(cells, colors(palette, "State", "state"), tooltip, x=x)
    dots = base.transform_filter("datum.cause == 'yes'").mark_point(filled=True, size=30, opacity=1)
    return alt.layer(base, dots.encode(color=alt.value("white")), title=subtitled(name))


def _rarest(table: pd.DataFrame) -> list[int]:
    """Return the ranks to show: first those that cause a hang, then those with the rarest rows."""
    ordered = table.sort_values("collective_seq_id", kind="stable")
    rows = ordered.groupby("rank").agg(row=("state", "/".join), is_cause=("is_cause", "any"))
    counts = rows.assign(alike=rows.groupby("row")["row"].transform("size"))
    first = counts.sort_values(["is_cause", "alike"], ascending=[False, True], kind="stable")
    return sorted(first.index[:CELLS])
