"""Memory figures: usage over time, at the peak and by operator, and the bandwidth of copies."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from hta_sql.charts.drawing.chart import Chart
from hta_sql.charts.drawing.figures import figure
from hta_sql.charts.drawing.flames import flames, widest
from hta_sql.charts.drawing.gaps import by_event
from hta_sql.charts.drawing.palette import (
    CLASS_COLORS,
    NEUTRAL_COLOR,
    OUTLIER_COLOR,
    PALE_COLOR,
    PHASE_COLORS,
    SKY_BLUE,
)
from hta_sql.charts.drawing.style import (
    WIDTH,
    bars,
    bars_by_name,
    colors,
    data,
    headed,
    labels,
    lane_names,
    marks,
    nothing,
    order,
    present,
    subtitled,
    zoom,
)
from hta_sql.charts.memory_file import CATEGORIES
from hta_sql.text import duration_unit, size_text, size_unit

MOMENTS, RECTANGLES = 4, 600
"""Maximum number of flame graphs in a chart, and of rectangles in all of them."""

LANES_SHOWN = 12
"""Maximum number of devices, each with its own panel or bar."""

SMALL = 0.001
"""Minimum memory of a shown device relative to the fullest one; the host often has a few bytes."""

AT_PEAK = {
    "held before and never freed": SKY_BLUE,
    "held before": "#B3DDF2",
    **{name: color for name, color in CATEGORIES.items() if name != "unknown"},
    "unknown": "#CCCCCC",
}
"""Category of memory at a peak ─▶ color; blocks allocated while recording have torch categories."""

IN_SNAPSHOT = {
    "parameters": CATEGORIES["parameter"],
    "gradients": CATEGORIES["gradient"],
    "activations": CATEGORIES["activation"],
    "optimizer": PHASE_COLORS["optimizer"],
    "sharding": "#8FBC5A",
    "communication": CLASS_COLORS["communication"],
    "unknown": "#CCCCCC",
}
"""Category of memory in a snapshot ─▶ its color."""


def _devices(table: pd.DataFrame) -> pd.Series[str]:
    """Return the device name of each row: ``CPU``, ``GPU 0``, or ``device 0`` for other types."""
    kinds = table["device_type"].map({0: "CPU", 1: "GPU"}).fillna("device")
    return kinds.where(table["device_type"] == 0, kinds + " " + table["device"].astype(str))


def _lanes(table: pd.DataFrame) -> list[str]:
    return lane_names(
        table.assign(where=_devices(table), who="rank " + table["rank"].astype(str)), "who", "where"
    )


@figure
def memory_curve(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a panel per device: allocated as an area, reserved as a line, the peak as a point."""
    title = "Memory in use over time"
    known = table[table["allocated_bytes"].notna()]
    if known.empty:
        return nothing(title, "The traces do not contain the total allocated memory.")
    note = "Area: allocated. Line: reserved by the allocator. Point: the peak of allocated memory."
    return _curves(known, title, note)


@figure
def snapshot_curve(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a panel per device: allocated as an area, peak as a point, out-of-memory as lines."""
    title = "Memory in use before the snapshot"
    known = table[table["time_ns"].notna()]
    if known.empty:
        return nothing(title, "The snapshot has no history with timestamps.")
    known = known.assign(
        device_type=1, ts=known["time_ns"], reserved_bytes=math.nan, capacity_bytes=math.nan
    )
    return _curves(known, title, "Area: allocated. Point: the peak. Vertical line: out of memory.")


@figure
def snapshot_peak(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Draw a flame graph per moment: bytes in use by stack, with the outermost frames on top."""
    keys = ["run", "rank", "device", "moment", "moment_id"]
    names = table["folded_stack"].fillna("no stack") + ";" + table["category"]
    moments = [*table.assign(stack=names).groupby(keys, sort=False, dropna=False)]
    fullest = sorted(moments, key=lambda moment: -int(moment[1]["bytes"].sum()))[:MOMENTS]
    panels = [_flame_of(rows, len(fullest)) for _, rows in fullest]
    notes = ["Width: bytes in use. The last frame of each stack is the category."]
    if len(fullest) < len(moments):
        notes.append(f"The fullest {len(fullest)} of {len(moments)} moments.")
    title = "What was in use at the peak and when memory ran out"
    return alt.vconcat(*panels, title=headed(title, *notes))


def _flame_of(table: pd.DataFrame, panels: int) -> Any:
    """Draw the flame graph of one moment on a device."""
    rows = widest(zip(table["stack"], table["bytes"], strict=True), RECTANGLES // panels)
    whole = float(table["bytes"].sum())
    size, unit = size_unit(whole)
    parts = rows["name"].where(rows["name"].isin(IN_SNAPSHOT), "frame")
    rows = rows.assign(shown=rows["size"] / size, part=parts)
    palette = present({"frame": PALE_COLOR, **IN_SNAPSHOT}, rows["part"])
    tooltip = {"name": "Frame", "shown:,.4~g": f"In use [{unit}]", "share:.2%": "Share of all"}
    first = table.iloc[0]
    text = (
        f"{first['moment']} of rank {first['rank']}, device {first['device']}: {size_text(whole)}"
    )
    chart = flames(rows, tooltip, colors(palette, "Category"))
    return chart.properties(title=subtitled(text))


def _curves(known: pd.DataFrame, title: str, note: str) -> alt.TopLevelMixin:
    named, left_out = by_event(known.assign(lane=_lanes(known)), "ts")
    peaks = named[named["is_peak"]].sort_values("allocated_bytes", ascending=False, kind="stable")
    first, last = named["ts"].min(), named["ts"].max()
    size, unit = duration_unit(float(last - first))
    axis = float(first), max(float(last - first), 1.0) / size, size, unit
    shown = peaks[peaks["allocated_bytes"] >= SMALL * peaks["allocated_bytes"].max()].head(
        LANES_SHOWN
    )
    panels = [
        _curve(named[named["lane"] == peak["lane"]], peak, place, axis)
        for place, peak in enumerate(shown.to_dict(orient="records"))
    ]
    if len(shown) < len(peaks):
        note += f" The fullest {len(shown)} of {len(peaks)} devices."
    return alt.vconcat(*panels, title=headed(title, note, *left_out))


def _curve(
    rows: pd.DataFrame, peak: dict[Any, Any], place: int, axis: tuple[float, float, float, str]
) -> alt.LayerChart | alt.FacetChart:
    first, length, time, unit = axis
    highest, capacity = float(peak["allocated_bytes"]), float(peak["capacity_bytes"] or math.nan)
    reserved = float(rows["reserved_bytes"].astype(float).max())
    top = max(highest, 0 if math.isnan(reserved) else reserved)
    size, name = size_unit(top)
    points = rows.assign(
        time=(rows["ts"] - first) / time,
        allocated=rows["allocated_bytes"] / size,
        reserved=rows["reserved_bytes"].astype(float) / size,
    )
    words = f"{peak['lane']}: {size_text(highest)} at the peak"
    words += "" if math.isnan(reserved) else f", {size_text(reserved)} reserved"
    words += "" if math.isnan(capacity) else f", of {size_text(capacity)}"
    whole = alt.Scale(domain=[0, length], nice=False)
    x = alt.X("time:Q", title=f"Time [{unit}]", scale=whole)
    # Slightly above the maximum, because a peak at the edge would be cut in half.
    height = alt.Scale(domain=[0, 1.06 * top / size], nice=False)
    y = alt.Y("allocated:Q", title=name, scale=height)
    base = Chart(data(points[["lane", "time", "allocated", "reserved"]]))
    area = base.mark_area(
        interpolate="step-after", color=CLASS_COLORS["memory"], opacity=0.6
    ).encode(x=x, y=y)
    marked = points[points["is_peak"]].rename(columns={"allocated": "top"})
    point = marks(
        alt.MarkDef("circle", color=OUTLIER_COLOR, size=60, opacity=1),
        marked[["lane", "time", "top"]],
        {"lane": "Device", "time:,.3f": f"Time [{unit}]", "top:,.3f": f"Peak [{name}]"},
        x=x,
        y=alt.Y("top:Q", title=name, scale=height),
    )
    layers: list[alt.Chart] = [area.add_params(zoom(f"memory_{place}")), point]
    if not math.isnan(reserved):
        line = base.mark_line(interpolate="step-after", color=NEUTRAL_COLOR)
        layers.insert(1, line.encode(x=x, y=alt.Y("reserved:Q", title=name, scale=height)))
    if "is_oom" in points and points["is_oom"].any():
        failed = points[points["is_oom"]].assign(requested=points["failed_bytes"] / size)
        tips = {"time:,.3f": f"Time [{unit}]", "requested:,.3f": f"Requested [{name}]"}
        rule = alt.MarkDef("rule", color=OUTLIER_COLOR)
        layers.append(marks(rule, failed[["time", "requested"]], tips, x=x))
    return alt.layer(*layers).properties(width=WIDTH, height=130, title=subtitled(words))


@figure
def live_at_peak(table: pd.DataFrame, *, top: int = 20) -> alt.TopLevelMixin:
    """Draw the memory in use at each device's peak, and the fullest device's largest allocators."""
    named = table[table["bytes"] > 0].assign(lane=_lanes(table[table["bytes"] > 0]))
    title = "Memory in use at the peak"
    if named.empty:
        return nothing(title, "No memory was in use.")
    before = named["state"].isin(list(AT_PEAK))
    named["part"] = named["state"].where(before, named["category"].fillna("unknown"))
    peaks = named.groupby("lane")["bytes"].sum().sort_values(ascending=False, kind="stable")
    fullest = str(peaks.index[0])
    lanes = list(peaks[peaks >= SMALL * peaks.max()].index[:LANES_SHOWN])
    notes = ["The category of a block follows from where it was allocated and freed."]
    if len(peaks) > len(lanes):
        notes.append(f"The fullest {len(lanes)} of {len(peaks)} devices.")
    return alt.vconcat(
        _stacked(named[named["lane"].isin(lanes)], lanes),
        _allocators(named[(named["lane"] == fullest)], top, fullest),
        title=headed(title, *notes),
    )


def _stacked(rows: pd.DataFrame, lanes: list[str]) -> alt.Chart:
    parts = rows.groupby(["lane", "part"], as_index=False).agg(
        bytes=("bytes", "sum"), blocks=("block_count", "sum")
    )
    parts["share"] = parts["bytes"] / parts.groupby("lane")["bytes"].transform("sum")
    parts["place"] = order(AT_PEAK, parts)
    # Bars of equal length, so that a small host device is visible next to one a thousand times
    # larger.
    tooltip = {
        "lane": "Device",
        "part": "In use",
        "bytes:,": "Bytes",
        "share:.1%": "Share of the peak",
        "blocks:,": "Blocks",
    }
    x = alt.X(
        "share:Q",
        title="Share of the peak",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    y = alt.Y("lane:N", title=None, sort=lanes, axis=alt.Axis(labelLimit=300, ticks=False))
    drawn = bars(parts, tooltip, _part(parts), x=x, y=y, order=alt.Order("place:Q"))
    return drawn.properties(width=WIDTH, height=alt.Step(24))


def _part(rows: pd.DataFrame) -> alt.Color:
    """Color the parts that occur; the legend is on top, because the labels need the full width."""
    return colors(present(AT_PEAK, rows["part"]), None, legend=alt.Legend(orient="top", columns=5))


def _allocators(rows: pd.DataFrame, top: int, lane: str) -> alt.Chart:
    who = rows["operator_name"].fillna(rows["state"])
    where = rows["module"].map(lambda module: f" in {module}" if isinstance(module, str) else "")
    sums = rows.assign(who=who + where).groupby(["who", "part"], as_index=False)
    bars = sums.agg(
        bytes=("bytes", "sum"), blocks=("block_count", "sum"), oldest=("oldest_ns", "max")
    )
    bars["whole"] = bars.groupby("who")["bytes"].transform("sum")
    bars = bars.sort_values(["whole", "who", "part"], ascending=[False, True, True], kind="stable")
    kept = list(dict.fromkeys(bars["who"]))[:top]
    bars = bars[bars["who"].isin(kept)]
    size, unit = size_unit(float(bars["whole"].max()))
    bars = bars.assign(
        held=bars["bytes"] / size, age=bars["oldest"] / 1e6, place=order(AT_PEAK, bars)
    )
    bars["short"] = labels(bars["who"])
    size_title = f"In use [{unit}]"
    tooltip = {
        "who": "Allocated by",
        "part": "What",
        "held:,.3f": size_title,
        "blocks:,": "Blocks",
        "age:,.3f": "Age of the oldest block [ms]",
    }
    x = alt.X("held:Q", title=size_title)
    drawn = bars_by_name(bars, x, tooltip, _part(bars), order=alt.Order("place:Q"))
    return drawn.properties(height=alt.Step(20), title=subtitled(f"{lane}, by allocating operator"))
