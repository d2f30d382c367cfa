"""Figure of the utilization of each GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import CLASS_COLORS, PURPLE, SKY_BLUE, TENSOR_COLOR
from hta_sql.charts.drawing.style import (
    MANY,
    WIDTH,
    data,
    followed,
    headed,
    lane_names,
    nothing,
    subtitled,
    tooltips,
    zoom,
)


class Measure(NamedTuple):
    """A column of ``gpu_summary``: its label, its color, and what it means."""

    label: str
    color: str
    meaning: str


MEASURES = {
    "utilization_pct": Measure(
        "Utilization", CLASS_COLORS["computation"], "share of the steps in which kernels run"
    ),
    "sm_efficiency_pct": Measure(
        "SM efficiency", SKY_BLUE, "share of the multiprocessors that these kernels occupy"
    ),
    "occupancy_pct": Measure("Occupancy", PURPLE, "resident warps, relative to the maximum"),
    "tensor_core_pct": Measure(
        "Tensor cores",
        TENSOR_COLOR,
        "share of kernel time that uses them (pale: unknown, not in the kernel's name)",
    ),
    "peak_pct": Measure(
        "Peak memory", CLASS_COLORS["memory"], "highest share of device memory in use"
    ),
}
"""Columns of ``gpu_summary`` that are drawn."""

Measures = dict[str, Measure]

MODELS = 3
"""Maximum number of GPU models to name."""


@figure
def gpu_summary(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a panel per measure, with a bar per GPU; a note lists the unknown measures."""
    keys = ["rank", "device"] if _has_several_devices(table) else ["rank"]
    lanes = lane_names(table, *keys)
    measures = {name: about for name, about in MEASURES.items() if table[name].notna().any()}
    heading = "Utilization of each GPU"
    if not measures:
        return nothing(heading, "None of these values is known for any GPU.")
    tall = pd.concat(
        [
            pd.DataFrame(
                {
                    "lane": lanes,
                    "at": range(len(table)),
                    "measure": measure.label,
                    "share": table[name] / 100,
                    "unknown": _unknown(table, name),
                }
            )
            for name, measure in measures.items()
        ]
    )
    tall["top"] = (tall["share"].fillna(0) + tall["unknown"].fillna(0)).clip(upper=1)
    models = [str(model) for model in dict.fromkeys(table["device_name"].dropna())]
    unknown = [about.label.lower() for name, about in MEASURES.items() if name not in measures]
    notes = [
        "; ".join(f"{about.label}: {about.meaning}" for about in measures.values()) + ".",
        *([f"Unknown for every GPU: {', '.join(unknown)}."] if unknown else []),
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
    for number, (words, color, _) in enumerate(measures.values()):
        rows = tall[tall["measure"] == words]
        axis = alt.Axis(labelLimit=220, minExtent=20) if number == 0 else None
        base = Chart(data(followed(rows, ["lane", "share", "unknown", "top"]))).encode(
            y=alt.Y("lane:N", sort=lanes, title=title if number == 0 else None, axis=axis),
            tooltip=_tooltip(words, title),
        )
        x = _share("share")
        pale = base.transform_filter("datum.top > datum.share || datum.share === null")
        bars = [
            pale.mark_bar(color=color, opacity=0.25).encode(x=_share("top")),
            base.transform_filter("datum.share !== null").mark_bar(color=color).encode(x=x),
        ]
        said = base.mark_text(align="left", dx=3, fontSize=11).encode(
            x=_share("top"),
            text=alt.Text("text:N"),
            color=alt.condition("datum.share === null", alt.value("#999999"), alt.value("black")),
        )
        text = "datum.share === null ? 'unknown' : format(datum.share, '.1%')"
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
    for number, (words, color, _) in enumerate(measures.values()):
        rows = tall[(tall["measure"] == words) & tall["share"].notna()]
        panels.append(
            Chart(data(rows[["lane", "at", "share", "unknown"]]), title=subtitled(words))
            .transform_calculate(low="datum.at - 0.5", high="datum.at + 0.5")
            .mark_bar(clip=True, binSpacing=0, color=color, stroke=color, strokeWidth=0.7)
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
    return tooltips({"lane": title, "share:.2%": words, "unknown:.2%": "Unknown"})
