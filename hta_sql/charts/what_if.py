"""What a step would take at best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from hta_sql.charts.style import (
    CLASS_COLOURS,
    NORMAL_COLOUR,
    WIDTH,
    by_run,
    data,
    duration_text,
    duration_unit,
    headed,
    nothing,
    subtitled,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

__all__ = ["what_if"]


def what_if(table: pd.DataFrame) -> alt.TopLevelMixin:
    """One bar per scenario: the step that is left, and behind it the recorded one.

    Args:
        table: Columns of the analysis ``what_if``; where there are no steps, of the whole capture.
    """
    title = "What a step would take at best"
    known = table[table["replayed_ns"].notna()]
    if known.empty:
        reasons = table["reason"].dropna().unique()
        return nothing(title, f"That cannot be said: {'; '.join(reasons) or 'no rows'}.")
    then = known["then_step_ns"].fillna(known["replayed_ns"]).astype(float)
    size, unit = duration_unit(float(then.max()))
    bars = known.assign(then=then / size, label=[_label(row) for row in known.to_dict("records")])
    panels: list[Any] = [_panel(rows, unit, run) for run, rows in by_run(bars)[0]]
    notes = [
        "Ceilings, not promises: one thing is changed at a time, all other work stays as it was."
    ]
    return alt.vconcat(*panels, title=headed(title, *notes, *by_run(bars)[1]))


def _label(row: Mapping[Hashable, Any]) -> str:
    step = row["then_step_ns"] if row["then_step_ns"] == row["then_step_ns"] else row["replayed_ns"]
    saved = f", {row['saved_pct']:.3g} % less" if row["saved_pct"] else ""
    return f"{duration_text(step)}{saved}"


def _panel(rows: pd.DataFrame, unit: str, run: str) -> alt.TopLevelMixin:
    order = list(rows["scenario"])
    y = alt.Y("scenario:N", sort=order, title=None, axis=alt.Axis(labelLimit=220))
    x = alt.X("then:Q", title=f"Step [{unit}]")
    base = alt.Chart(data(rows[["scenario", "then", "label"]]), width=WIDTH - 160)
    colour = alt.condition(
        alt.datum.scenario == "as recorded",
        alt.value(NORMAL_COLOUR),
        alt.value(CLASS_COLOURS["computation"]),
    )
    tooltip = [alt.Tooltip("scenario:N", title="Scenario"), alt.Tooltip("label:N", title="Step")]
    drawn = base.mark_bar().encode(y=y, x=x, color=colour, tooltip=tooltip)
    words = base.mark_text(align="left", dx=4).encode(y=y, x=x, text="label:N")
    chart = alt.layer(drawn, words)
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart
