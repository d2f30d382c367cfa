"""What each GPU is used for: its summary, what a step is spent on, and the kernels that cost most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.bars import Stack, mean_steps, stacked_parts
from hta_sql.charts.palette import (
    CLASS_COLOURS,
    DATA_LOADING_COLOUR,
    HOST_COLOURS,
    NEUTRAL_COLOUR,
    PALE_COLOUR,
    TENSOR_COLOUR,
    ramp,
)
from hta_sql.charts.style import (
    MANY,
    OWN_COLOURS,
    WIDTH,
    bars_by_name,
    by_run,
    colours,
    data,
    duration_unit,
    followed,
    headed,
    labels,
    lane_names,
    marks,
    nothing,
    present,
    shades,
    subtitled,
    told,
    zoom,
)

__all__ = ["gpu_summary", "kernel_table", "step_breakdown"]


STEP_ROLES = {
    "kernel_ns": ("kernel", CLASS_COLOURS["computation"]),
    "memcpy_ns": ("memcpy", CLASS_COLOURS["memory"]),
    "memset_ns": ("memset", "#7FCDB4"),
    "communication_ns": ("communication", CLASS_COLOURS["communication"]),
    "runtime_ns": ("runtime", HOST_COLOURS["runtime call"]),
    "data_loader_ns": ("data loader", DATA_LOADING_COLOUR),
    "cpu_exec_ns": ("CPU exec", "#8C96A0"),
    "other_ns": ("other", "#DDE2E6"),
}
"""Column of ``step_breakdown`` ─▶ what people call it, and its colour; in the order of the bar."""

MEASURES = {
    "utilisation_pct": ("Utilisation", CLASS_COLOURS["computation"]),
    "sm_efficiency_pct": ("SM efficiency", "#56B4E9"),
    "occupancy_pct": ("Occupancy", "#CC79A7"),
    "tensor_core_pct": ("Tensor cores", TENSOR_COLOUR),
    "peak_pct": ("Peak memory", CLASS_COLOURS["memory"]),
}
"""Column of ``gpu_summary`` ─▶ what people call it, and its colour."""

MEANINGS = {
    "utilisation_pct": "Utilisation: share of the steps in which kernels run",
    "sm_efficiency_pct": "SM efficiency: multiprocessors that they fill meanwhile",
    "occupancy_pct": "Occupancy: warps of those that fit",
    "tensor_core_pct": "Tensor cores: kernel time on them (pale: the name does not tell)",
    "peak_pct": "Peak memory: highest share of it in use",
}

Measures = dict[str, tuple[str, str]]

MODELS = 3
"""So many models of GPUs are named."""

TENSOR_COLOURS = {"yes": TENSOR_COLOUR, "no": NEUTRAL_COLOUR, "not told": PALE_COLOUR}

BINS = {
    "under_1us_count": "< 1 µs",
    "from_1us_count": "1 µs",
    "from_10us_count": "10 µs",
    "from_100us_count": "100 µs",
    "from_1ms_count": "1 ms",
    "from_10ms_count": "≥ 10 ms",
}
"""Column of ``kernel_table`` ─▶ from where on its launches last."""


def step_breakdown(table: pd.DataFrame, *, percent: bool | None = None) -> alt.TopLevelMixin:
    """One stacked bar per rank: its mean step, in eight roles that add up to it."""
    stack = Stack(
        title="What a step is spent on",
        notes=(
            "Mean of the steps of each rank as its device sees them: such a step ends when what was launched in it has",
            "ended, so that they overlap and last longer than the host's. A moment counts for the first of these that",
            "fits: what is right of communication is not hidden by the device.",
        ),
        legend="Role",
        whole="the step",
    )
    return stacked_parts(mean_steps(table, STEP_ROLES), STEP_ROLES, stack, percent=percent)


def gpu_summary(table: pd.DataFrame) -> alt.TopLevelMixin:
    """A panel per measure, with a bar per GPU; what is not known is said."""
    keys = ["rank", "device"] if _has_several_devices(table) else ["rank"]
    lanes = lane_names(table, *keys)
    measures = {name: about for name, about in MEASURES.items() if table[name].notna().any()}
    heading = "What each GPU is used for"
    if not measures:
        return nothing(heading, "Nothing of it is known of any GPU.")
    tall = pd.concat(
        [
            pd.DataFrame(
                {
                    "lane": lanes,
                    "at": range(len(table)),
                    "measure": words,
                    "share": table[name] / 100,
                    "unknown": _unknown(table, name),
                }
            )
            for name, (words, _) in measures.items()
        ]
    )
    tall["top"] = (tall["share"].fillna(0) + tall["unknown"].fillna(0)).clip(upper=1)
    models = [str(model) for model in dict.fromkeys(table["device_name"].dropna())]
    unknown = [words.lower() for name, (words, _) in MEASURES.items() if name not in measures]
    notes = [
        "; ".join(MEANINGS[name] for name in measures) + ".",
        *([f"Not known of any GPU: {', '.join(unknown)}."] if unknown else []),
        *([", ".join(models[:MODELS])] if models else []),
    ]
    draw = _measures_of_few if len(table) <= MANY else _measures_of_many
    title = " / ".join(key.capitalize() for key in keys)
    if len(set(table["run"])) > 1:
        title = f"Run / {title}"
    return draw(tall, lanes, title, measures).properties(title=headed(heading, *notes))


def _has_several_devices(table: pd.DataFrame) -> bool:
    return bool(len(table)) and bool(table.groupby(["run", "rank"])["device"].nunique().max() > 1)


def _unknown(table: pd.DataFrame, name: str) -> Any:
    return table["tensor_core_unknown_pct"] / 100 if name == "tensor_core_pct" else 0.0


def _measures_of_few(
    tall: pd.DataFrame, lanes: list[str], title: str, measures: Measures
) -> alt.HConcatChart:
    panels = []
    for number, (words, colour) in enumerate(measures.values()):
        rows = tall[tall["measure"] == words]
        axis = alt.Axis(labelLimit=220, minExtent=20) if number == 0 else None
        base = alt.Chart(data(followed(rows, ["lane", "share", "unknown", "top"]))).encode(
            y=alt.Y("lane:N", sort=lanes, title=title if number == 0 else None, axis=axis),
            tooltip=_tooltip(words, title),
        )
        x = _share("share")
        pale = base.transform_filter("datum.top > datum.share || datum.share === null")
        bars = [
            pale.mark_bar(color=colour, opacity=0.25).encode(x=_share("top")),
            base.transform_filter("datum.share !== null").mark_bar(color=colour).encode(x=x),
        ]
        said = base.mark_text(align="left", dx=3, fontSize=11).encode(
            x=_share("top"),
            text=alt.Text("text:N"),
            color=alt.condition("datum.share === null", alt.value("#999999"), alt.value("black")),
        )
        text = "datum.share === null ? 'not known' : format(datum.share, '.1%')"
        panels.append(
            alt.layer(*bars, said.transform_calculate(text=text)).properties(
                width=110, height=alt.Step(24), title=alt.Title(words, fontSize=13, frame="group")
            )
        )
    return alt.hconcat(*panels, spacing=26)


def _measures_of_many(
    tall: pd.DataFrame, lanes: list[str], title: str, measures: Measures
) -> alt.VConcatChart:
    panels = []
    names = dict(enumerate(lanes))
    for number, (words, colour) in enumerate(measures.values()):
        rows = tall[(tall["measure"] == words) & tall["share"].notna()]
        rows = rows.assign(lane=rows["at"].map(names))
        panels.append(
            alt.Chart(data(rows[["lane", "at", "share", "unknown"]]), title=subtitled(words))
            .transform_calculate(low="datum.at - 0.5", high="datum.at + 0.5")
            .mark_bar(clip=True, binSpacing=0, color=colour, stroke=colour, strokeWidth=0.7)
            .encode(
                x=alt.X(
                    "low:Q",
                    bin="binned",
                    title=f"{title}, in this order",
                    axis=alt.Axis(format="d", tickMinStep=1, grid=False),
                    scale=alt.Scale(domain=[-0.5, len(lanes) - 0.5], nice=False),
                ),
                x2="high:Q",
                y=_share("share", alt.Y),
                tooltip=_tooltip(words, title),
            )
            .properties(width=WIDTH, height=80)
            .add_params(zoom(f"measure_{number}"))
        )
    return alt.vconcat(*panels)


def _share(field: str, channel: Any = alt.X) -> Any:
    return channel(
        f"{field}:Q",
        title=None,
        axis=alt.Axis(format="%", values=[0, 0.5, 1], title=None),
        scale=alt.Scale(domain=[0, 1]),
    )


def _tooltip(words: str, title: str) -> list[alt.Tooltip]:
    return told({"lane": title, "share:.2%": words, "unknown:.2%": "Not told"})


def kernel_table(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """The kernels that cost most: time, whether on tensor cores, and how their launches spread.

    In any grouping; ``top`` is of each run.
    """
    runs, more = by_run(table)
    panels = [_kernels(rows, top, run) for run, rows in runs]
    notes = [
        "Left: time of a rank, mean of the ranks. Right: launches by duration, each from the edge that",
        "is written to the next, as a share of the kernel's launches.",
        *more,
    ]
    return alt.vconcat(*panels, title=headed("The kernels that cost most", *notes))


def _kernels(rows: pd.DataFrame, top: int, run: str) -> alt.HConcatChart:
    ranks = max(1, rows["rank"].nunique())
    rows = rows.assign(on_cores=rows["uses_tensor_cores"].map({True: "yes", False: "no"}))
    rows = rows.assign(on_cores=rows["on_cores"].fillna("not told"))
    counts = ["kernel_count", *BINS]
    kernels = rows.groupby(["name", "short_name", "on_cores"], as_index=False)[
        ["sum_ns", *counts]
    ].sum()
    kernels = kernels.sort_values(["sum_ns", "name"], ascending=[False, True]).head(top)
    size, unit = duration_unit(float(kernels["sum_ns"].max()) / ranks if len(kernels) else 0)
    kernels = kernels.assign(
        time=kernels["sum_ns"] / ranks / size,
        share=kernels["sum_ns"] / max(float(rows["sum_ns"].sum()), 1),
        short=labels(_told_apart(kernels)),
    )
    tooltip = {
        "name": "Kernel",
        "time:,.3f": f"Time of a rank [{unit}]",
        "share:.1%": "Share of kernel time",
        "on_cores": "On tensor cores",
        "kernel_count:,": "Launches on all ranks",
    }
    x = alt.X("time:Q", title=f"Time of a rank [{unit}]", axis=alt.Axis(tickCount=4))
    below = alt.Legend(orient="bottom")
    cores = present(TENSOR_COLOURS, kernels["on_cores"])
    colour = colours(cores, "Tensor cores", "on_cores", legend=below)
    bars = bars_by_name(kernels, x, tooltip, colour).properties(width=300, height=alt.Step(20))
    spread = kernels.melt(["name", "short", "kernel_count"], list(BINS), "bin", "launches")
    spread = spread[spread["launches"] > 0]
    spread = spread.assign(
        bin=spread["bin"].map(BINS), part=spread["launches"] / spread["kernel_count"]
    )
    scale = alt.Scale(domain=[0, 1], range=ramp(CLASS_COLOURS["computation"]))
    cells = marks(
        alt.MarkDef("rect", stroke="white"),
        spread,
        {"name": "Kernel", "bin": "From", "launches:,": "Launches", "part:.1%": "Share"},
        y=alt.Y("short:N", title=None, sort=list(kernels["short"]), axis=None),
        x=alt.X(
            "bin:O",
            title="Launches last",
            sort=list(BINS.values()),
            scale=alt.Scale(domain=list(BINS.values())),
            axis=alt.Axis(labelAngle=-40),
        ),
        color=shades("part", "Of the launches", scale, format="%", orient="bottom"),
    ).properties(width=alt.Step(34), height=alt.Step(20))
    panel = alt.hconcat(bars, cells, spacing=8, resolve=OWN_COLOURS)
    return panel.properties(title=subtitled(f"Run {run}")) if run else panel


def _told_apart(kernels: pd.DataFrame) -> Iterable[str]:
    """Short names, and full ones where two kernels share a short one."""
    often = kernels["short_name"].duplicated(keep=False)
    return list(kernels["short_name"].where(~often, kernels["name"]))
