"""Figures that compare two runs, and key figures over runs."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import BLUE, CHANGE_COLORS, OUTLIER_COLOR, SKY_BLUE, STEP_COLOR
from hta_sql.charts.drawing.style import (
    WIDTH,
    bars,
    bars_by_name,
    by_name,
    colors,
    data,
    headed,
    labels,
    nothing,
    subtitled,
    tooltips,
    zoom,
)
from hta_sql.text import duration_text, duration_unit, size_unit

SIDE_COLORS = (BLUE, SKY_BLUE, "#BBBBBB")
"""Colors of control, test and difference."""

_GROUP = 30
"""Height of the three bars of an operation [pixels]."""

SIDES = {**CHANGE_COLORS, "step": STEP_COLOR}

WORSE, USUAL, UNKNOWN = OUTLIER_COLOR, BLUE, "#999999"

VERDICTS = ("worse", "as before, or better", "too few earlier runs")

TITLE = "Metrics of runs, compared with earlier runs"

FEW_RUNS = 8
"""Maximum number of runs with a tick each."""


@figure
def comparison(table: pd.DataFrame, *, top: int = 15) -> alt.TopLevelMixin:
    """Draw a waterfall from the control's step to the test's, and the significant changes."""
    title = "Where the difference in step time comes from"
    if table.empty:
        return nothing(title, "There are no two runs, ranks or steps to compare.")
    step = table[table["level"] == "step"].iloc[0]
    parts = table[(table["level"] == "part") & (table["diff_ns"] != 0)]
    changes = table[(table["level"] == "row") & table["is_change"]].head(top)
    note = f"{step['test_run']} against {step['control_run']}; mean over the steps of all ranks."
    if parts.empty:
        return nothing(title, f"Nothing changed: {note}")
    size, unit = duration_unit(float(max(step["control_ns"], step["test_ns"])))
    rows = _waterfall(step, parts)
    rows[["start", "end"]] /= size
    fall = bars(
        rows,
        {"lane": "Part", "told": "Time", "noise": "Noise"},
        colors(SIDES, "In the test"),
        y=alt.Y("lane:N", sort=None, title=None),
        x=alt.X("start:Q", title=f"Step time [{unit}]"),
        x2="end:Q",
    ).properties(width=WIDTH)
    panels = [fall] if changes.empty else [fall, _changed(changes)]
    return alt.vconcat(*panels, title=headed(title, note))


def _waterfall(step: pd.Series[Any], parts: pd.DataFrame) -> pd.DataFrame:
    """Return the bars of a waterfall: the control's step, the parts, and the test's step.

    Each part starts where the previous bar ends.
    """
    end = int(step["control_ns"])
    rows = [_whole(step, "control")]
    for row in parts.to_dict("records"):
        diff = int(row["diff_ns"])
        rows.append(
            {
                "lane": row["part"],
                "start": end,
                "end": end + diff,
                "part": "longer" if diff > 0 else "shorter",
                "noise": _noise_text(row["noise_ns"]),
                "told": f"{'+' if diff > 0 else '-'}{duration_text(abs(diff))}",
            }
        )
        end += diff
    return pd.DataFrame([*rows, _whole(step, "test")])


def _whole(step: pd.Series[Any], side: str) -> dict[str, Any]:
    lasts = int(step[f"{side}_ns"])
    told = {"told": duration_text(lasts), "noise": "", "part": "step"}
    return {"lane": f"{step[f'{side}_run']} ({side})", "start": 0, "end": lasts, **told}


def _noise_text(noise: float) -> str:
    return "unknown: one side has only one step" if pd.isna(noise) else f"± {duration_text(noise)}"


def _changed(changes: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Draw bars of significant changes, each with its noise."""
    size, unit = duration_unit(float(changes["diff_ns"].abs().max()))
    names = [
        f"{what} ({part})" for what, part in zip(changes["subject"], changes["part"], strict=True)
    ]
    noise = changes["noise_ns"].astype(float).fillna(0)
    rows = changes.assign(
        lane=names,
        short=labels(names),
        diff=changes["diff_ns"] / size,
        least=(changes["diff_ns"] - noise) / size,
        most=(changes["diff_ns"] + noise) / size,
        side=["longer" if diff > 0 else "shorter" for diff in changes["diff_ns"]],
        told=[duration_text(abs(diff)) for diff in changes["diff_ns"]],
        noise=[_noise_text(value) for value in changes["noise_ns"].astype(float)],
    )
    columns = ["lane", "short", "diff", "least", "most", "side", "told", "noise", "verdict"]
    columns += ["control_count", "test_count", "control_kernel", "test_kernel"]
    base = Chart(data(rows[columns])).encode(y=by_name(rows))
    drawn = base.mark_bar().encode(
        x=alt.X("diff:Q", title=f"Step time, test - control [{unit}]"),
        color=colors(SIDES, "In the test", field="side"),
        tooltip=tooltips(
            {
                "lane": "What",
                "verdict": "Change",
                "told": "Difference",
                "noise": "Noise",
                "control_count:,.4~g": "Count in the control",
                "test_count:,.4~g": "Count in the test",
                "control_kernel": "Kernel in the control",
                "test_kernel": "Kernel in the test",
            }
        ),
    )
    spans = base.mark_rule(color="#333333").encode(x=alt.X("least:Q"), x2="most:Q")
    title = headed("What changed beyond noise", "Thin line: the range of the noise.")
    return alt.layer(drawn, spans, title=title, width=WIDTH)


@figure
def trace_diff(table: pd.DataFrame, *, top: int = 25) -> alt.TopLevelMixin:
    """Draw the largest changes in duration: increases to the right, decreases to the left."""
    title = "What changed most"
    runs = list(dict.fromkeys(zip(table["control_run"], table["test_run"], strict=True)))
    note = f"{runs[0][1]} against {runs[0][0]}." if runs else "There are no two runs to compare."
    rows = table[table["diff_sum_ns"] != 0].head(top)
    if rows.empty:
        return nothing(title, f"No duration changed: {note}")
    size, unit = duration_unit(float(rows["diff_sum_ns"].abs().max()))
    names = [
        name if category is None or category != category else f"{name} ({category})"  # noqa: PLR0124 - true for NaN
        for name, category in zip(rows["name"], rows["category"], strict=True)
    ]
    if rows["shapes"].notna().any():
        shapes = rows["shapes"].fillna("")
        names = [f"{name} {shape}" for name, shape in zip(names, shapes, strict=True)]
    rows = rows.assign(
        lane=names,
        short=labels(names),
        diff=rows["diff_sum_ns"] / size,
        control=rows["control_sum_ns"] / size,
        test=rows["test_sum_ns"] / size,
        share=rows["diff_pct"].astype(float) / 100,
        part=["longer" if diff > 0 else "shorter" for diff in rows["diff_sum_ns"]],
    )
    tooltip = {
        "lane": "Operation",
        "control:,.3f": f"Control [{unit}]",
        "test:,.3f": f"Test [{unit}]",
        "diff:+,.3f": f"Difference [{unit}]",
        "share:+.1%": "Relative to the control",
        "control_count:,": "Operations in the control",
        "test_count:,": "Operations in the test",
        "count_change": "Change of counts",
    }
    x = alt.X("diff:Q", title=f"Test - control [{unit}]")
    drawn = bars_by_name(rows, x, tooltip, colors(CHANGE_COLORS, "In the test"))
    heading = headed(title, f"{note} Total durations of all selected ranks.")
    return drawn.properties(title=heading).add_params(zoom("difference"))


def side_by_side(
    table: pd.DataFrame, title: str, axis: str, *, format_: str, top: int = 25
) -> alt.TopLevelMixin:
    """Draw grouped bars: control, test and difference of the operations that differ most.

    Args:
        table: ``name``, then a column for each side, then one for the difference.
        title: Title of the chart.
        axis: Title of the value axis.
        format_: Number format of the tooltip.
        top: Maximum number of operations.
    """
    _, *sides = (str(column) for column in table.columns)
    names = table.columns[0]
    order = table[sides[-1]].abs().sort_values(ascending=False, kind="stable").index[:top]
    rows = table.loc[order]
    rows = rows.assign(short=labels(rows[names].astype(str)))
    long = rows.melt(id_vars=[names, "short"], value_vars=sides, var_name="part", value_name="size")
    long = long.rename(columns={names: "lane"})
    more = f" The {top} of {len(table):,} that differ most." if len(table) > top else ""
    color = colors(dict(zip(sides, SIDE_COLORS, strict=True)), None)
    tooltip = {"lane": "Operation", "part": "Side", f"size:{format_}": axis}
    beside = alt.YOffset("part:N", sort=sides)
    drawn = bars_by_name(long, alt.X("size:Q", title=axis), tooltip, color, yOffset=beside)
    heading = headed(title, f"{sides[1]} against {sides[0]}.{more}")
    high = drawn.properties(title=heading, height=alt.Step(_GROUP, **{"for": "position"}))
    return high.add_params(zoom("sides"))


@figure
def kpi_trends(table: pd.DataFrame, *, top: int = 60) -> alt.TopLevelMixin:
    """Draw a panel per figure and job: value in each run, median of previous runs, and noise.

    ``top`` is the number of latest runs to show per job.
    """
    known = table[table["kpi_value"].notna()]
    if known.empty:
        return nothing(TITLE, "No metric is known for any run.")
    panels = [
        _panel(rows.tail(top).copy(), str(kpi), str(job))
        for (kpi, job), rows in known.groupby(["kpi", "job"], sort=False)
    ]
    notes = (
        "Points: runs in order of capture, highlighted if worse than the noise of the earlier runs.",
        "Line and band: median and noise of the earlier runs.",
    )
    return alt.concat(*panels, columns=2, title=headed(TITLE, *notes))


def _panel(rows: pd.DataFrame, kpi: str, job: str) -> alt.LayerChart | alt.FacetChart:
    size, unit = 1.0, "%"
    if kpi.endswith("_ns"):
        size, unit = duration_unit(float(rows["kpi_value"].max()))
    elif kpi.endswith("_bytes"):
        size, unit = size_unit(float(rows["kpi_value"].max()))
    rows["place"] = range(1, len(rows) + 1)
    rows["value"] = rows["kpi_value"] / size
    rows["median"] = rows["baseline_median"] / size
    rows["low"] = rows["median"] - rows["tolerance"] / size
    rows["high"] = rows["median"] + rows["tolerance"] / size
    rows["verdict"] = [
        VERDICTS[2] if unknown else VERDICTS[0 if worse else 1]
        for unknown, worse in zip(rows["is_regression"].isna(), rows["is_regression"], strict=True)
    ]
    places = sorted(set(rows["place"]))
    ticks = places if len(places) <= FEW_RUNS else alt.Undefined  # no ticks between runs
    x = alt.X(
        "place:Q",
        title="Run",
        axis=alt.Axis(tickMinStep=1, format="d", values=ticks),
        scale=alt.Scale(nice=False, padding=8),
    )
    base = Chart(data(rows)).encode(x=x)
    name = kpi.removesuffix("_ns").removesuffix("_pct").removesuffix("_bytes").replace("_", " ")
    y = alt.Y("value:Q", title=f"{name} [{unit}]", scale=alt.Scale(zero=False))
    tooltip = {
        "run": "Run",
        "captured_at": "Captured",
        "git_sha": "Commit",
        "value:,.3f": f"{name} [{unit}]",
        "median:,.3f": "Median of earlier runs",
        "difference_pct:+.2f": "Difference [%]",
        "verdict": "Verdict",
    }
    palette = dict(zip(VERDICTS, (WORSE, USUAL, UNKNOWN), strict=True))
    color = colors(palette, "", "verdict", legend=alt.Legend(orient="bottom"))
    band = base.mark_area(opacity=0.15, color=USUAL).encode(
        alt.Y("low:Q", title=f"{name} [{unit}]"), y2="high:Q"
    )
    line = base.mark_line(color=USUAL, opacity=0.6, strokeWidth=1).encode(y="median:Q")
    points = base.mark_circle(size=45, opacity=1).encode(
        y=y, color=color, tooltip=tooltips(tooltip)
    )
    return alt.layer(band, line, points).properties(
        title=subtitled(job or name), width=330, height=140
    )
