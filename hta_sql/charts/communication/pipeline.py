"""Figures of pipeline stages, their messages, and the arrivals of ranks at one collective."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.matrix import CELLS, spread
from hta_sql.charts.drawing.palette import (
    CLASS_COLORS,
    NEUTRAL_COLOR,
    PHASE_COLORS,
    WAIT_COLOR,
)
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    by_run,
    colors,
    data,
    headed,
    marks,
    present,
    subtitled,
    zoom,
)
from hta_sql.text import duration_unit

PASSES = {
    "forward": PHASE_COLORS["forward"],
    "backward": PHASE_COLORS["backward"],
    "between neighbors": NEUTRAL_COLOR,
    "wait": WAIT_COLOR,
}
"""Kind of bar in ``p2p_pairs`` ─▶ color."""

MESSAGES = 600
"""Maximum number of messages drawn, from the start of the step."""


@figure
def p2p_pairs(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw sends and receives in a lane per rank, ordered by stage, with a line for each message.

    Shows the first step of the first run; if there are many ranks, those of the first pipelines.
    """
    one = table[table["run"] == table["run"].iloc[0]]
    matched = one[one["send_start_ns"].notna() & one["recv_start_ns"].notna()]
    if len(matched) == 0:
        matched = one
    steps = sorted(matched["step"].dropna().unique())
    shown = matched[matched["step"] == steps[0]] if steps else matched
    order = _order(shown)
    kept = shown[shown["src_rank"].isin(order[:MANY]) & shown["dst_rank"].isin(order[:MANY])]
    kept = kept.sort_values("end_ns", kind="stable")[:MESSAGES]
    starts = kept[["send_start_ns", "recv_start_ns"]].min(axis=1)
    size, unit = duration_unit(float(kept["end_ns"].max() - starts.min()))
    bars, lines = _messages(kept, float(starts.min()), size)
    lanes = [rank for rank in order[:MANY] if rank in set(bars["rank"])]
    y = alt.Y("rank:O", title="Rank", sort=lanes, axis=alt.Axis(ticks=False))
    x = alt.X("low:Q", title=f"Time [{unit}]", scale=alt.Scale(zero=False, nice=False))
    tall = alt.Step(max(10, min(26, 480 // max(1, len(lanes)))))
    palette = present(PASSES, bars["pass"])
    drawn = marks(
        alt.MarkDef("bar", height=alt.RelativeBandSize(0.7), clip=True),
        bars,
        {
            "what": "What",
            "rank": "Rank",
            "low:,.4~g": f"From [{unit}]",
            "high:,.4~g": f"To [{unit}]",
        },
        x=x,
        x2="high:Q",
        y=y,
        color=colors(palette, None, "pass"),
    ).properties(width=WIDTH, height=tall)
    arrows = (
        Chart(data(lines), width=WIDTH, height=tall)
        .mark_line(strokeWidth=1, color="#555555", opacity=0.6, clip=True)
        .encode(x=x, y=y, detail="message:N")
    )
    notes = ["Lines connect a send with its receive. Orange: one side waits for the other."]
    notes.append("Drag to move, Ctrl + wheel to zoom, double-click to see all.")
    where = f"Step {steps[0]:.0f}" if steps else "The capture"
    notes.append(f"{where}: {len(kept):,} of {len(table):,} messages.")
    title = headed("Messages of a pipeline", *notes)
    return alt.layer(drawn, arrows, title=title).add_params(zoom("messages"))


def _order(pairs: pd.DataFrame) -> list[int]:
    """Return the ranks ordered by stage; ranks of unknown stages by number."""
    sides = [
        pairs[[f"{side}_rank", f"{side}_stage"]].set_axis(["rank", "stage"], axis=1)
        for side in ("src", "dst")
    ]
    ranks = pd.concat(sides).drop_duplicates().sort_values(["stage", "rank"], kind="stable")
    return [int(rank) for rank in ranks["rank"]]


def _messages(pairs: pd.DataFrame, first: float, size: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split both sides of each message into wait and transfer; also return the connecting lines."""
    directions = {True: "forward", False: "backward"}
    bars: list[dict[str, object]] = []
    lines: list[dict[str, object]] = []
    for row in pairs.to_dict(orient="records"):
        towards = directions.get(row["is_forward"], "between neighbors")
        end = (row["end_ns"] - first) / size
        for side, rank in (("send", row["src_rank"]), ("recv", row["dst_rank"])):
            start = row[f"{side}_start_ns"]
            if pd.isna(start):
                continue
            wait = row[f"{side}_wait_ns"]
            low = (start - first) / size
            moves = low + (0 if pd.isna(wait) else wait / size)
            what = f"{side} {row['src_rank']} to {row['dst_rank']}"
            if moves > low:
                bars.append({"rank": rank, "low": low, "high": moves, "pass": "wait", "what": what})
            bars.append({"rank": rank, "low": moves, "high": end, "pass": towards, "what": what})
            at = moves if side == "send" else end
            lines.append({"rank": rank, "low": at, "message": row["collective_id"]})
    return pd.DataFrame(bars), pd.DataFrame(lines)


@figure
def collective_arrivals(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a fan per run: each rank's arrival, its wait for the last rank, then the transfer.

    If there are many ranks, a sample is shown, evenly spread by arrival, with the first and the
    last.
    """
    size, unit = duration_unit(float((table["end_ns"] - table["start_ns"]).max()))
    runs, notes = by_run(table)
    panels = []
    for run, rows in runs:
        in_order = rows.sort_values("position", kind="stable")
        shown = in_order.iloc[spread(list(range(len(rows))))]
        first = float(rows["start_ns"].min())
        begins = (shown["start_ns"] - first) / size
        comes = begins + shown["wait_ns"].astype(float).fillna(0) / size
        ends = (shown["end_ns"] - first) / size
        names = ["lane", "rank", "host_name"]
        lanes = shown.assign(
            lane=shown["position"].astype(str) + ". rank " + shown["rank"].astype(str)
        )
        bars = pd.concat(
            [
                lanes[names].assign(low=begins, high=comes, part="wait"),
                lanes[names].assign(low=comes, high=ends, part="transfer"),
            ]
        )
        bars = bars[bars["high"] > bars["low"]]
        palette = {"wait": WAIT_COLOR, "transfer": CLASS_COLORS["communication"]}
        x = alt.X("low:Q", title=f"Time since the first rank arrived [{unit}]")
        y = alt.Y("lane:N", title=None, sort=list(lanes["lane"]), axis=alt.Axis(ticks=False))
        step = alt.Step(max(5, min(18, 480 // max(1, len(shown)))))
        tooltip = {
            "rank": "Rank",
            "host_name": "Host",
            "part": "What",
            "low:,.4~g": f"From [{unit}]",
            "high:,.4~g": f"To [{unit}]",
        }
        look = alt.MarkDef("bar", height=alt.RelativeBandSize(0.8))
        color = colors(palette, None)
        panel = marks(look, bars, tooltip, x=x, x2="high:Q", y=y, color=color)
        panel = panel.properties(width=WIDTH, height=step)
        head = rows.iloc[0]
        what = f"{head['collective']} no. {head['collective_id']}"
        panels.append(panel.properties(title=subtitled(f"Run {run}: {what}" if run else what)))
        if len(shown) < len(rows):
            notes.append(f"{CELLS} of {len(rows):,} ranks, sampled evenly in order of arrival.")
    how = "Ranks in order of arrival. All wait for the last rank, then the data is transferred."
    title = headed("Arrival of the ranks at one collective", how, *dict.fromkeys(notes))
    return alt.vconcat(*panels, title=title)
