"""Figure of the most expensive kernels."""

from __future__ import annotations

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.palette import (
    CLASS_COLORS,
    NEUTRAL_COLOR,
    PALE_COLOR,
    TENSOR_COLOR,
    ramp,
)
from hta_sql.charts.drawing.style import (
    OWN_COLORS,
    bars_by_name,
    by_run,
    colors,
    headed,
    labels,
    marks,
    present,
    shades,
    subtitled,
)
from hta_sql.text import duration_unit

TENSOR_COLORS = {"yes": TENSOR_COLOR, "no": NEUTRAL_COLOR, "unknown": PALE_COLOR}

BINS = {
    "under_1us_count": "< 1 µs",
    "from_1us_count": "1 µs",
    "from_10us_count": "10 µs",
    "from_100us_count": "100 µs",
    "from_1ms_count": "1 ms",
    "from_10ms_count": "≥ 10 ms",
}
"""Column of ``kernel_table`` ─▶ lower limit of the launch durations that it counts."""


@figure
def kernel_table(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw the most expensive kernels: time, use of tensor cores, and launch durations.

    Works with any grouping; ``top`` applies to each run.
    """
    runs, more = by_run(table)
    panels = [_kernels(rows, top, run) for run, rows in runs]
    notes = [
        "Left: mean time per rank. Right: launches by duration, as a share of the launches of the kernel;",
        "each column starts at its label and ends at the next one.",
        *more,
    ]
    return alt.vconcat(*panels, title=headed("The most expensive kernels", *notes))


def _kernels(rows: pd.DataFrame, top: int, run: str) -> alt.HConcatChart:
    ranks = max(1, rows["rank"].nunique())
    rows = rows.assign(on_cores=rows["uses_tensor_cores"].map({True: "yes", False: "no"}))
    rows = rows.assign(on_cores=rows["on_cores"].fillna("unknown"))
    counts = ["kernel_count", *BINS]
    kernels = rows.groupby(["name", "short_name", "on_cores"], as_index=False)[
        ["sum_ns", *counts]
    ].sum()
    kernels = kernels.sort_values(["sum_ns", "name"], ascending=[False, True]).head(top)
    size, unit = duration_unit(float(kernels["sum_ns"].max()) / ranks if len(kernels) else 0)
    kernels = kernels.assign(
        time=kernels["sum_ns"] / ranks / size,
        share=kernels["sum_ns"] / max(float(rows["sum_ns"].sum()), 1),
        short=labels(list(kernels["short_name"])),
    )
    tooltip = {
        "name": "Kernel",
        "time:,.3f": f"Time per rank [{unit}]",
        "share:.1%": "Share of kernel time",
        "on_cores": "Uses tensor cores",
        "kernel_count:,": "Launches on all ranks",
    }
    x = alt.X("time:Q", title=f"Time per rank [{unit}]", axis=alt.Axis(tickCount=4))
    below = alt.Legend(orient="bottom")
    cores = present(TENSOR_COLORS, kernels["on_cores"])
    color = colors(cores, "Tensor cores", "on_cores", legend=below)
    bars = bars_by_name(kernels, x, tooltip, color).properties(width=300, height=alt.Step(20))
    spread = kernels.melt(["name", "short", "kernel_count"], list(BINS), "bin", "launches")
    spread = spread[spread["launches"] > 0]
    spread = spread.assign(
        bin=spread["bin"].map(BINS), part=spread["launches"] / spread["kernel_count"]
    )
    scale = alt.Scale(domain=[0, 1], range=ramp(CLASS_COLORS["computation"]))
    cells = marks(
        alt.MarkDef("rect", stroke="white"),
        spread,
        {"name": "Kernel", "bin": "From", "launches:,": "Launches", "part:.1%": "Share"},
        y=alt.Y("short:N", title=None, sort=list(kernels["short"]), axis=None),
        x=alt.X(
            "bin:O",
            title="Duration of launches",
            sort=list(BINS.values()),
            scale=alt.Scale(domain=list(BINS.values())),
            axis=alt.Axis(labelAngle=-40),
        ),
        color=shades("part", "Share of the launches", scale, format="%", orient="bottom"),
    ).properties(width=alt.Step(34), height=alt.Step(20))
    panel = alt.hconcat(bars, cells, spacing=8, resolve=OWN_COLORS)
    return panel.properties(title=subtitled(f"Run {run}")) if run else panel
