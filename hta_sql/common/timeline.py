"""Timelines of trace frames, with HTA's classes and functions.

For device activity alone, :meth:`hta_sql.TraceStore.run` with ``gpu_timeline`` needs no frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from hta_sql.common.trace_df import (
    find_events_by_name_patterns_using_decoded_names,
    find_events_by_name_patterns_using_symbol_table,
)
from hta_sql.common.trace_filter import Filter, text_columns
from hta_sql.common.trace_symbol_table import TraceSymbolTable
from hta_sql.errors import ParameterError

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "EventType",
    "Timeline",
    "TimelinePlotSetting",
    "align_module_with_kernels",
    "plot_events_timeline",
    "prepare_timeline_events",
]

HOST_STREAM = -1
ANNOTATION_STREAM = -2
"""Where align_module_with_kernels puts calls; HTA's 0 is a real stream on ROCm."""
HOVER_COLUMNS = ["trace", "rank", "iteration", "stream", "cat", "index"]
_LABEL_COLUMNS = ["stream", "rank", "trace", "depth"]
_KEPT = re.compile(r"(^##.+##$)|(^<.+>$)|(^Mem\w+(\s+\w+)?\s+\(.+\)$)")
_NAME = re.compile(r"^(void\s+)?([\w_:.#\s<>,]+)(\(.+\))?")


class EventType(Enum):
    """What a frame has events of."""

    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


@dataclass(frozen=True)
class TimelinePlotSetting:
    """How a timeline looks.

    Attributes:
        x_start_column: Column that starts are written to.
        x_end_column: Column that ends are written to.
        task_column: Column that lanes are written to.
        color_column: Column that colours go by.
        task_height: Height of a lane [pixels].
        amplify_short_events: Draw short events longer, so that they can be seen.
        short_events_display_duration: Length that they get [µs].
        use_global_time: Keep times as they are; else the first event starts at 0.
    """

    x_start_column: str = "calibrated_start_global"
    x_end_column: str = "calibrated_end_global"
    task_column: str = "task"
    color_column: str = "name"
    task_height: int = 30
    amplify_short_events: bool = True
    short_events_display_duration: int = 1000
    use_global_time: bool = False


DEFAULT_SETTING = TimelinePlotSetting()


def event_type(events: pd.DataFrame) -> EventType:
    """Say whether a frame has device activity, host events or both."""
    on_host = events["stream"] == HOST_STREAM if "stream" in events else pd.Series([True])
    if on_host.all():
        return EventType.CPUEvents
    return EventType.AllEvents if on_host.any() else EventType.GPUEvents


def simplify_name(name: str, max_length: int = 45) -> str:
    """Shorten a name: without arguments, ``void`` and autograd's long prefix; cut at a length."""
    if not _KEPT.match(name):
        name = name.replace("(anonymous namespace)::", "anon::")
        name = re.sub(r"^void\s+", "", name)
        name = name.replace("autograd::engine::evaluate_function: ", "autograd::")
        found = _NAME.match(name)
        name = found.group(2) if found else name
    return name if len(name) < max_length else f"{name[: max_length - 3]}..."


def prepare_timeline_events(
    df: pd.DataFrame,
    setting: TimelinePlotSetting = DEFAULT_SETTING,
    symbol_table: TraceSymbolTable | None = None,
    hover_columns: list[str] | None = None,
) -> pd.DataFrame:
    """Add start, end and lane to events, shorten their names, and sort them by lane and start.

    Args:
        df: Frame with ``name, ts, dur``.
        setting: How the timeline looks.
        symbol_table: What the numbers in ``name`` and ``cat`` stand for.
        hover_columns: Columns to keep for the tooltip.

    Returns:
        The events; ``ts`` from the first one on [µs]. Empty for an empty frame.
    """
    wanted = {"name", "ts", "dur", *(hover_columns or HOVER_COLUMNS), *_LABEL_COLUMNS}
    events = df[[column for column in df.columns if column in wanted]].copy()
    if symbol_table is not None:
        symbol_table.decode_df(events, create_new_columns=False)
    events["name"] = [simplify_name(str(name)) for name in events["name"]]
    first = events["ts"].min() if len(events) else 0
    events["ts"] -= first
    origin = first if setting.use_global_time else 0
    shortest = setting.short_events_display_duration if setting.amplify_short_events else 0
    events[setting.x_start_column] = events["ts"] + origin
    events[setting.x_end_column] = events["ts"] + origin + events["dur"].clip(lower=shortest)
    events[setting.task_column] = _lanes(events)
    return events.sort_values([setting.task_column, "ts"], kind="stable")


def align_module_with_kernels(
    events_df: pd.DataFrame,
    module_list: list[str],
    sym_table: TraceSymbolTable | None = None,
    include_original_cpu_events: bool = False,
) -> pd.DataFrame:
    """Add a bar for each call of some modules or operators where its kernels run.

    Args:
        events_df: Frame with the columns that :class:`CallGraph` adds.
        module_list: Expressions that names match from their start on.
        sym_table: What the numbers in ``name`` stand for.
        include_original_cpu_events: Whether to keep host events.

    Returns:
        The device activity and, on stream -2, the calls: from the start of their first kernel on,
        for as long as their kernels span.

    Raises:
        ParameterError: The frame has no columns of a call graph, or no names as text.
    """
    needed = {"stream", "name", "first_kernel_start", "kernel_span", "num_kernels"}
    if missing := needed - set(events_df.columns):
        raise ParameterError(f"The frame has no {', '.join(sorted(missing))}: make a CallGraph.")
    host = events_df[(events_df["stream"] == -1) & (events_df["num_kernels"] >= 1)]
    text = text_columns(events_df)[0]
    if sym_table is not None and text != "name":
        found = find_events_by_name_patterns_using_symbol_table(host, module_list, sym_table)
    elif text:
        found = find_events_by_name_patterns_using_decoded_names(host, module_list, text)
    else:
        raise ParameterError("The frame has no names as text: give the symbol table.")
    calls = host.loc[host["index"].isin(found)].copy()
    calls["ts"], calls["dur"] = calls["first_kernel_start"], calls["kernel_span"]
    calls["stream"] = ANNOTATION_STREAM
    on_gpu = events_df["stream"] >= (-1 if include_original_cpu_events else 0)
    return pd.concat([events_df[on_gpu], calls], ignore_index=True)


def plot_events_timeline(
    title: str,
    events: pd.DataFrame,
    setting: TimelinePlotSetting = DEFAULT_SETTING,
    hover_columns: list[str] | None = None,
    output_image_path: str | None = None,
) -> alt.TopLevelMixin:
    """Draw events that :func:`prepare_timeline_events` made.

    Args:
        title: Title of the chart.
        events: The events.
        setting: How the timeline looks.
        hover_columns: Columns for the tooltip.
        output_image_path: Save it there: ``.html`` (which opens offline), ``.png`` or ``.svg``.

    Returns:
        The chart; a notebook shows it.

    Raises:
        ParameterError: The frame does not have the columns.
    """
    from hta_sql.charts import save  # noqa: PLC0415 - altair only where a chart is wanted
    from hta_sql.charts.frame_timeline import frame_timeline  # noqa: PLC0415
    from hta_sql.charts.style import themed  # noqa: PLC0415

    columns = {
        setting.x_start_column: "start",
        setting.x_end_column: "end",
        setting.task_column: "task",
        setting.color_column: "colour",
    }
    if missing := set(columns) - set(events.columns):
        raise ParameterError(f"The frame has no {', '.join(sorted(missing))}: prepare it first.")
    hover = [column for column in hover_columns or HOVER_COLUMNS if column in events]
    renamed = events[[*columns, *hover]].rename(columns=columns)
    for bound in ("start", "end"):
        if pd.api.types.is_datetime64_any_dtype(renamed[bound]):
            renamed[bound] = renamed[bound].astype("datetime64[ns]").astype("int64") / 1000
    chart = themed(frame_timeline(renamed, title, hover, setting.task_height))
    if output_image_path:
        save(chart, Path(output_image_path))
    return chart


class Timeline:
    """Events of a frame as a timeline: ``Timeline(frame, symbols).plot("Step 3")``.

    Args:
        timeline_events: Frame of events.
        symbol_table: What the numbers in ``name`` and ``cat`` stand for.
        filter_func: Which of them to show.
        setting: How it looks.
        hover_columns: Columns for the tooltip.
    """

    def __init__(
        self,
        timeline_events: pd.DataFrame,
        symbol_table: TraceSymbolTable,
        filter_func: Filter | None = None,
        setting: TimelinePlotSetting = DEFAULT_SETTING,
        hover_columns: list[str] | None = None,
    ) -> None:
        self.setting = setting
        self.hover_columns = hover_columns or HOVER_COLUMNS
        made = {setting.task_column, setting.x_start_column, setting.x_end_column}
        self.timeline_events = timeline_events
        if not made <= set(timeline_events.columns):
            chosen = filter_func(timeline_events, symbol_table) if filter_func else timeline_events
            self.timeline_events = prepare_timeline_events(
                chosen, setting, symbol_table, self.hover_columns
            )

    def plot(self, title: str, save_path: str | None = None) -> alt.TopLevelMixin:
        """Draw it; see :func:`plot_events_timeline`."""
        return plot_events_timeline(
            title, self.timeline_events, self.setting, self.hover_columns, save_path
        )


def _lanes(events: pd.DataFrame) -> pd.Series:
    """Name the lane of each event by what tells it apart: trace, rank, stream or depth."""
    words = pd.Series([""] * len(events), index=events.index)
    for column, width in (("trace", 0), ("rank", 3)):
        if column in events and len(set(events[column])) > 1:
            words += [f"{column} {str(value).zfill(width)} " for value in events[column]]
    streams = events.get("stream", pd.Series(HOST_STREAM, index=events.index))
    depths = events.get("depth", pd.Series(-1, index=events.index))
    return words + [_lane(int(s), int(d)) for s, d in zip(streams, depths, strict=True)]


def _lane(stream: int, depth: int) -> str:
    if stream == ANNOTATION_STREAM:
        return "gpu annotate"
    if stream != HOST_STREAM:
        return f"gpu stream {stream:03d}"
    return "cpu events" if depth < 0 else f"cpu level {depth:03d}"
