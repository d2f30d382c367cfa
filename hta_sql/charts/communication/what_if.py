"""Figure of the best possible step time under each what-if scenario."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS, NORMAL_COLOR
from hta_sql.charts.drawing.style import WIDTH, by_run, colors, data, headed, nothing, subtitled
from hta_sql.text import duration_text, duration_unit

RECORDED, REPLAYED, AT_BEST = "as recorded", "replayed", "at best"

KINDS = {
    RECORDED: NORMAL_COLOR,
    REPLAYED: CLASS_COLORS["computation"],
    AT_BEST: CLASS_COLORS["memory"],
}

CEILINGS = (
    "Each bar changes one thing and replays all ranks, following the dependencies between operations.",
    "A step takes as long as its slowest rank, so a change that helps only the other ranks saves nothing.",
)

MEANINGS = {
    "no late rank": "No late rank: the operations and the host of a straggler take as long as the median of the other ranks.",
    "balanced": "Balanced: each operation takes the mean time of the same operation on the ranks of its stage.",
    "link at peers' speed": "Link at peers' speed: slow links are as fast as their peers, for the same message size.",
    "no transfer": "No transfer: transfers take no time; ranks still wait for each other.",
    "no exposed communication": "No exposed communication: no rank waits or transfers data while it computes nothing.",
    "perfect overlap": "Perfect overlap: the same, but transfers take their time, overlapped by other work.",
    "uniform": "Uniform: each operation takes the mean time of its name over all ranks and steps, and each transfer the median.",
}
"""Scenario ─▶ description of the change."""


LIMITS: dict[Any, tuple[str, str]] = {
    "lower": ("at least ", "at most "),
    "upper": ("at most ", "at least "),
    "estimate": ("about ", ""),
}
"""Bound of a saving ─▶ words before the saving, and before the remaining time."""


@figure
def what_if(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw one bar per scenario: the remaining step time in front of the recorded step time.

    If there are no steps, a bar covers the whole capture.
    """
    title = "Step time under other conditions"
    known = table[table["replayed_ns"].notna()]
    if known.empty:
        reasons = table["reason"].dropna().unique()
        return nothing(title, f"Unknown: {'; '.join(reasons) or 'no rows'}.")
    then = known["replayed_step_ns"].fillna(known["replayed_ns"]).astype(float)
    size, unit = duration_unit(float(then.max()))
    bars = known.assign(
        then=then / size,
        kind=[_kind(row) for row in known.to_dict("records")],
        label=[saving_label(row) for row in known.to_dict("records")],
    )
    panels: list[Any] = [_panel(rows, unit, run) for run, rows in by_run(bars)[0]]
    notes = [*CEILINGS, *(MEANINGS[name] for name in MEANINGS if name in set(known["scenario"]))]
    limits = known["reason"].dropna().unique()
    notes.extend(f"{reason[:1].upper()}{reason[1:]}." for reason in limits)
    if left_out := _left_out(table):
        notes.append(f"Omitted: {left_out}.")
    return alt.vconcat(*panels, title=headed(title, *notes, *by_run(bars)[1]))


def _left_out(table: pd.DataFrame) -> str:
    """Return a note on the scenarios without a result, each with its reason."""
    unknown = table[table["replayed_ns"].isna()].drop_duplicates(["scenario", "reason"])
    pairs = zip(unknown["scenario"], unknown["reason"], strict=True)
    return "; ".join(f"{name} ({reason})" for name, reason in pairs)


def _kind(row: Mapping[Hashable, Any]) -> str:
    if row["scenario"] == RECORDED:
        return RECORDED
    return AT_BEST if row.get("bound") == "upper" else REPLAYED


def saving_label(row: Mapping[Hashable, Any]) -> str:
    """Return the remaining step time and the saving, each with its bound."""
    step = (
        row["replayed_step_ns"]
        if row["replayed_step_ns"] == row["replayed_step_ns"]
        else row["replayed_ns"]
    )
    least, most = LIMITS.get(row.get("bound"), ("", ""))
    if row.get("bound") == "lower" and not row["saved_pct"]:
        return f"at most {duration_text(step)}, saving unknown"
    saved = f", {least}{row['saved_pct']:.3g} % less" if row["saved_pct"] else ""
    return f"{most}{duration_text(step)}{saved}"


def _panel(rows: pd.DataFrame, unit: str, run: str) -> alt.TopLevelMixin:
    order = list(rows["scenario"])
    y = alt.Y("scenario:N", sort=order, title=None, axis=alt.Axis(labelLimit=220))
    x = alt.X("then:Q", title=f"Step [{unit}]")
    base = Chart(data(rows[["scenario", "then", "label", "kind"]]), width=WIDTH - 160)
    below = alt.Legend(orient="bottom")
    color = colors(KINDS, None, "kind", legend=below)
    tooltip = [alt.Tooltip("scenario:N", title="Scenario"), alt.Tooltip("label:N", title="Step")]
    drawn = base.mark_bar().encode(y=y, x=x, color=color, tooltip=tooltip)
    words = base.mark_text(align="left", dx=4).encode(y=y, x=x, text="label:N")
    chart = alt.layer(drawn, words)
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart
