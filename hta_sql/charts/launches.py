"""Three histograms of launches: short kernels, slow calls, long delays."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from hta_sql.charts.style import CLASS_COLOURS, data, lane_names

BINS = 40

_PANELS = (
    ("is_short_kernel", "gpu_dur_ns", "Kernels shorter than their call", "Kernel duration [µs]"),
    ("is_runtime_outlier", "cpu_dur_ns", "Slow calls", "Call duration [µs]"),
    ("is_launch_delay_outlier", "launch_delay_ns", "Long launch delays", "Launch delay [µs]"),
)

__all__ = ["cuda_kernel_launch_stats"]


def cuda_kernel_launch_stats(table: pd.DataFrame) -> alt.VConcatChart:
    """Per rank: kernels shorter than their call, slow calls, long delays, as histograms.

    Args:
        table: Columns of the analysis ``cuda_kernel_launch_stats``; its cutoffs decide what is
            an outlier. Bins are counted here, so that the chart does not grow with the trace.
    """
    ranked = table.assign(lane=lane_names(table, "rank"))
    rows = [
        alt.hconcat(
            *(_histogram(launches, *panel) for panel in _PANELS),
            title=f"Launches of rank {lane}: {len(launches):,}",
        )
        for lane, launches in ranked.groupby("lane", sort=False)
    ]
    return alt.vconcat(*rows)


def _histogram(launches: pd.DataFrame, flag: str, column: str, title: str, unit: str) -> alt.Chart:
    values = launches.loc[launches[flag].astype(bool), column].to_numpy(dtype=float) / 1e3
    counts, edges = np.histogram(values, bins=BINS) if len(values) else (np.zeros(0), np.zeros(1))
    bins = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": counts.astype(int)})
    share = len(values) / max(len(launches), 1)
    chart: alt.Chart = (
        alt.Chart(
            data(bins[bins["count"] > 0]),
            title=alt.Title(title, subtitle=f"{len(values):,} of {len(launches):,} ({share:.1%})"),
            width=240,
            height=180,
        )
        .mark_bar(color=CLASS_COLOURS["computation"])
        .encode(
            x=alt.X("low:Q", title=unit, bin="binned"),
            x2="high:Q",
            y=alt.Y("count:Q", title="Launches"),
            tooltip=[
                alt.Tooltip("low:Q", title="From [µs]", format=",.2f"),
                alt.Tooltip("high:Q", title="To [µs]", format=",.2f"),
                alt.Tooltip("count:Q", title="Launches"),
            ],
        )
    )
    return chart
