"""Figures of process groups: costs, traffic between ranks, links and experts."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.bars import Stack, stacked_bars, stacked_parts
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    BLACK,
    BLUE,
    CLASS_COLORS,
    GREEN,
    MISSING_COLOR,
    NEUTRAL_COLOR,
    NORMAL_COLOR,
    OUTLIER_COLOR,
    PURPLE,
    SKY_BLUE,
    UNKNOWN_COLOR,
    UNMATCHED_COLOR,
    WAIT_COLOR,
    ramp,
)
from hta_sql.charts.drawing.style import (
    MANY,
    bars,
    by_run,
    colors,
    headed,
    lane_names,
    lanes,
    marks,
    nothing,
    present,
    shades,
    size_unit,
    subtitled,
)
from hta_sql.text import counted

CELLS = 64
"""Maximum number of rows and columns of a matrix; with more ranks, neighboring ranks share one."""

SIDE = 420
"""Size of a matrix along each axis [pixels]."""

BLOCKING_PARTS = {
    "exposed_blocking_ns": ("blocking", CLASS_COLORS["communication"]),
    "exposed_coincident_ns": ("coincident", SKY_BLUE),
    "exposed_unknown_ns": ("unknown", UNKNOWN_COLOR),
}
"""Column of ``blocking_communication`` ─▶ label and color."""

EXCHANGE_PARTS = {
    "overlapped_ns": ("overlapped", CLASS_COLORS["computation+communication"]),
    "exposed_ns": ("exposed", CLASS_COLORS["communication"]),
}
"""Column of ``expert_parallel`` ─▶ label and color."""

RANK_PARTS = {
    "communication_ns": ("communication", CLASS_COLORS["communication"]),
    "wait_ns": ("wait", WAIT_COLOR),
    "unmatched_ns": ("unmatched", UNMATCHED_COLOR),
}
"""Column of ``communication_by_rank`` ─▶ label and color."""

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


@dataclass(frozen=True)
class Cells:
    """The cells of a matrix of sources and destinations.

    Attributes:
        column: Column with the values of the cells.
        title: Label with unit.
        unit: Divisor that converts the values to the unit of the label.
        how: Aggregation of ranks that share a cell.
        notes: How to read the matrix.
    """

    column: str
    title: str
    unit: float
    how: str
    notes: tuple[str, ...]


@figure
def all_to_all_traffic(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: bytes that each rank sends to every other rank in all-to-alls.

    Unknown values have no cell.
    """
    title = "All-to-all traffic between ranks"
    known = table[table["known_bytes"].notna() & table["dst_rank"].notna()]
    if not len(known):
        return nothing(title, f"Nothing to show: {_reasons(table)}.")
    pairs = known.groupby(["run", "src_rank", "dst_rank"], as_index=False)
    sums = pairs.agg(known_bytes=("known_bytes", "sum"))
    unit, name = size_unit(float(sums["known_bytes"].max()))
    notes = [
        "Strong color: much data. A strong row and column: the rank holds popular experts. Gray: unknown."
    ]
    if (lost := int((table["known_count"] < table["collective_count"]).sum())) > 0:
        notes.append(
            f"Some sizes are unknown for {counted(lost, 'pair')} of ranks: {_reasons(table)}."
        )
    return _matrices(sums, title, Cells("known_bytes", f"Sent [{name}]", unit, "sum", (*notes,)))


@figure
def links(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a matrix per run: the median bandwidth from each rank to every other rank.

    Links without a bandwidth have no cell.
    """
    title = "Bandwidth of links"
    known = table[table["median_gbps"].notna()]
    if not len(known):
        return nothing(title, f"Nothing to show: {_reasons(table)}.")
    slow = known[known["is_slow"].eq(other=True)]
    named = [f"{row.src_rank} to {row.dst_rank}" for row in slow.head(8).itertuples()]
    notes = [
        "Median of the transfers. For an all-to-all, this is a lower bound of the link's bandwidth. Gray: unknown."
    ]
    if named:
        notes.append(f"Slower than their peers: {', '.join(named)}{' …' * (len(slow) > 8)}.")
    pairs = known.groupby(["run", "src_rank", "dst_rank"], as_index=False)
    means = pairs.agg(median_gbps=("median_gbps", "max"))
    return _matrices(means, title, Cells("median_gbps", "GB/s", 1, "mean", (*notes,)))


@figure
def expert_load(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw the load of each rank's experts relative to the mean of the group.

    If there are many ranks, the most loaded ones are shown.
    """
    title = "Load balance of experts"
    known = table[table["ratio_to_mean"].notna()]
    if not len(known):
        return nothing(title, f"Nothing to show: {_reasons(table)}.")
    means = known.groupby(["run", "rank"], as_index=False).agg(
        ratio_to_mean=("ratio_to_mean", "mean")
    )
    ordered: pd.DataFrame = means.sort_values("ratio_to_mean", kind="stable")
    kept = means.loc[sorted(ordered.index[-MANY:])]
    rows = kept.assign(
        lane=lane_names(kept, "rank"),
        load=kept["ratio_to_mean"].map(lambda x: "above the mean" if x > 1 else "up to the mean"),
    )
    x, width = lanes(rows)
    notes = [
        "Bytes for the experts of a rank, relative to the mean of its group. All ranks wait for the highest bar."
    ]
    if len(kept) < len(means):
        notes.append(f"The {len(kept)} most loaded of {len(means):,} ranks.")
    palette = {"above the mean": OUTLIER_COLOR, "up to the mean": NORMAL_COLOR}
    tooltip = {"lane": "Rank", "ratio_to_mean:,.3f": "Load / mean"}
    y = alt.Y("ratio_to_mean:Q", title="Load / mean")
    chart = bars(rows, tooltip, colors(palette, None, "load"), x=x, y=y)
    return chart.properties(title=headed(title, *notes), width=width)


@figure
def expert_parallel(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw overlapped and exposed time of expert-parallel exchanges per rank and role."""
    by = ["run", "rank", "comm_role"]
    sums = table.groupby(by, as_index=False)[list(EXCHANGE_PARTS)].sum()
    stack = Stack(
        title="Expert-parallel exchanges",
        notes=("Sum over the calls of each rank.",),
        legend="Part",
        whole="exchanges",
    )
    return stacked_parts(sums, EXCHANGE_PARTS, stack, ("rank", "comm_role"), percent=percent)


@figure
def communication_by_rank(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """Draw communication per rank or host: transferring data, and waiting for other ranks."""
    stack = Stack(
        title="Communication and waiting",
        notes=(
            "Sum over the collectives of each rank. A rank that hardly waits arrives last, and the others wait for it.",
        ),
        legend="Part",
        whole="communication",
    )
    lane = [
        host if pd.isna(rank) else f"{rank:.0f}"
        for host, rank in zip(table["host_name"], table["rank"], strict=True)
    ]
    rows = table.assign(lane=lane, place=range(len(table)))
    return stacked_parts(rows, RANK_PARTS, stack, ("lane",), percent=percent)


@figure
def blocking_communication(
    table: pd.DataFrame, *, percent: bool | None = None
) -> alt.TopLevelMixin:
    """Draw the exposed communication of each rank: blocking and not blocking."""
    sums = table.groupby(["run", "rank"], as_index=False)[list(BLOCKING_PARTS)].sum()
    stack = Stack(
        title="Exposed communication: does it block?",
        notes=(
            "Sum over the host's steps of each rank. Blocking: on the rank's critical path. Coincident: the rank was also",
            "held up by something else, so a faster network would gain nothing.",
        ),
        legend="Part",
        whole="exposed communication",
    )
    return stacked_parts(sums, BLOCKING_PARTS, stack, percent=percent)


def _reasons(table: pd.DataFrame) -> str:
    return "; ".join(table["reason"].dropna().unique()) or "no sizes are known"


def _matrices(table: pd.DataFrame, title: str, cells: Cells) -> alt.TopLevelMixin:
    runs, notes = by_run(table)
    panels = [_matrix(rows, cells, run) for run, rows in runs]
    return alt.vconcat(*panels, title=headed(title, *cells.notes, *notes))


def _matrix(table: pd.DataFrame, cells: Cells, run: str) -> alt.Chart:
    names = sorted({*table["src_rank"], *table["dst_rank"]})
    wide = -(-len(names) // CELLS)
    place = {name: names[at - at % wide] for at, name in enumerate(names)}
    value = table[cells.column].astype(float) / cells.unit
    shown = pd.DataFrame(
        {"src": table["src_rank"].map(place), "dst": table["dst_rank"].map(place), "cell": value}
    ).astype({"src": int, "dst": int})
    shown = shown.groupby(["src", "dst"], as_index=False).agg(cell=("cell", cells.how))
    first = " (first of each cell)" if wide > 1 else ""
    size = alt.Step(max(6, min(28, SIDE // -(-len(names) // wide))))
    axis = alt.Axis(labelOverlap=True, ticks=False, labelAngle=0)
    chart = marks(
        "rect",
        shown,
        {"src": "From", "dst": "To", "cell:,.4~g": cells.title},
        x=alt.X("dst:O", title=f"To rank{first}", axis=axis),
        y=alt.Y("src:O", title=f"From rank{first}", axis=axis),
        color=shades("cell", cells.title, alt.Scale(domainMin=0, range=ramp(SKY_BLUE))),
    ).properties(width=size, height=size, view=alt.ViewBackground(fill=MISSING_COLOR))
    return chart.properties(title=subtitled(f"Run {run}")) if run else chart
