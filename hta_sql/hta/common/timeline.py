"""Plot timelines of trace frames, with HTA's classes and functions.

For GPU activity alone, :meth:`hta_sql.TraceStore.run` with ``gpu_timeline`` needs no frame.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.timeline_settings import (
    ANNOTATION_STREAM,
    HOST_STREAM,
    EventType,
    PlotFormat,
    TimelinePlotSetting,
    auto_detect_setting,
)
from hta_sql.hta.common.trace_filter import Filter, text_column
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

if TYPE_CHECKING:
    import altair as alt

__all__ = ["PlotFormat", "Timeline", "TimelinePlotSetting", "align_module_with_kernels"]

log = logging.getLogger(__name__)

HOVER_COLUMNS = ["trace", "rank", "iteration", "stream", "cat", "index"]
_LABEL_COLUMNS = ["stream", "rank", "trace", "depth", "tid"]
_KEPT = re.compile(r"(^##.+##$)|(^<.+>$)|(^Mem\w+(\s+\w+)?\s+\(.+\)$)")
_NAME = re.compile(r"^(void\s+)?([\w_:.#\s<>,]+)(\(.+\))?")
_SETTING = TimelinePlotSetting()


def simplify_name(name: str, max_length: int = 45) -> str:
    """Shorten a name: drop arguments, ``void`` and autograd's long prefix, then truncate."""
    if not _KEPT.match(name):
        name = name.replace("(anonymous namespace)::", "anon::")
        name = re.sub(r"^void\s+", "", name)
        name = name.replace("autograd::engine::evaluate_function: ", "autograd::")
        found = _NAME.match(name)
        name = found.group(2) if found else name
    return name if len(name) < max_length else f"{name[: max_length - 3]}..."


def prepare_timeline_events(
    df: pd.DataFrame,
    setting: TimelinePlotSetting = _SETTING,
    symbol_table: TraceSymbolTable | None = None,
    hover_columns: list[str] | None = None,
) -> pd.DataFrame:
    """Add start, end and lane to events, shorten their names, and sort them by lane and start.

    Args:
        df: Frame with ``name, ts, dur``.
        setting: Settings of the timeline.
        symbol_table: Symbol table of the ids in ``name`` and ``cat``.
        hover_columns: Columns for the tooltip.

    Returns:
        The events, with ``ts`` relative to the first event [µs]. Empty for an empty frame.

    Raises:
        ParameterError: The frame is not empty and lacks a column.
    """
    if missing := {"name", "ts", "dur"} - set(df.columns):
        if df.empty:
            return df.copy()
        raise ParameterError(f"Missing columns in the frame: {', '.join(sorted(missing))}.")
    wanted = {"name", "ts", "dur", *(hover_columns or HOVER_COLUMNS), *_LABEL_COLUMNS}
    events = df[[column for column in df.columns if column in wanted]].copy()
    if symbol_table is not None:
        symbol_table.decode_df(events)
    events["name"] = [simplify_name(str(name)) for name in events["name"]]
    first = events["ts"].min() if len(events) else 0
    events["ts"] -= first
    origin = first if setting.use_global_time else 0
    shortest = setting.short_events_display_duration if setting.amplify_short_events else 0
    events[setting.x_start_column] = events["ts"] + origin
    events[setting.x_end_column] = events["ts"] + origin + events["dur"].clip(lower=shortest)
    detected = replace(setting)
    auto_detect_setting(events, detected)
    events[setting.task_column] = _lanes(events, detected)
    return events.sort_values([setting.task_column, "ts"], kind="stable")


def align_module_with_kernels(
    events_df: pd.DataFrame,
    module_list: list[str],
    sym_table: TraceSymbolTable | None = None,
    include_original_cpu_events: bool = False,
) -> pd.DataFrame:
    """Add a bar for each call to the given modules or operators, spanning its kernels.

    Args:
        events_df: Frame with the columns that :class:`CallGraph` adds.
        module_list: Regular expressions, matched at the start of names.
        sym_table: Symbol table of the ids in ``name``.
        include_original_cpu_events: Whether to keep host events.

    Returns:
        The GPU activity, plus the calls on stream -2. Each call spans the time from the start of
        its first kernel to the end of its last kernel.

    Raises:
        ParameterError: The frame lacks the columns of a call graph, or has no column with names.
    """
    needed = {"stream", "name", "first_kernel_start", "kernel_span", "num_kernels"}
    if missing := needed - set(events_df.columns):
        raise ParameterError(
            f"Missing columns in the frame: {', '.join(sorted(missing))}. Create a CallGraph first."
        )
    host = events_df[(events_df["stream"] == HOST_STREAM) & (events_df["num_kernels"] >= 1)]
    expression = "|".join(f"(?:{module})" for module in module_list)
    text = text_column(events_df, "name")
    if sym_table is not None and text != "name":
        is_wanted = host["name"].isin(sym_table.matching(expression))
    elif text:
        is_wanted = host[text].str.match(expression)
    else:
        raise ParameterError(
            "The frame contains symbol ids instead of names: pass the symbol table."
        )
    calls = host.loc[is_wanted].copy()
    calls["ts"], calls["dur"] = calls["first_kernel_start"], calls["kernel_span"]
    calls["stream"] = ANNOTATION_STREAM
    on_gpu = events_df["stream"] >= (-1 if include_original_cpu_events else 0)
    return pd.concat([events_df[on_gpu], calls], ignore_index=True)


def plot_events_timeline(
    title: str,
    events: pd.DataFrame,
    setting: TimelinePlotSetting = _SETTING,
    hover_columns: list[str] | None = None,
    output_image_path: str | None = None,
) -> alt.TopLevelMixin | str | None:
    """Draw events that :func:`prepare_timeline_events` returned.

    Args:
        title: Title of the chart.
        events: The events.
        setting: Settings of the timeline.
        hover_columns: Columns for the tooltip.
        output_image_path: File to save the chart to: ``.html`` (opens offline), ``.png`` or
            ``.svg``.

    Returns:
        The chart, which a notebook displays; or its HTML page as a string if the setting requests
        HTML. None, without writing a file, if there are no events.

    Raises:
        ParameterError: The frame lacks a column, or the setting requests a file without a path.
    """
    if setting.plot_format is PlotFormat.File and not output_image_path:
        raise ParameterError(
            "plot_format is PlotFormat.File, which requires a path: pass output_image_path."
        )
    if events.empty:
        log.warning("%s: there are no events to draw.", title)
        return None
    from hta_sql.charts import save  # noqa: PLC0415 - altair is needed for charts only
    from hta_sql.charts.export import page_of  # noqa: PLC0415
    from hta_sql.charts.shown import themed  # noqa: PLC0415
    from hta_sql.charts.timeline.frames import frame_timeline  # noqa: PLC0415

    columns = {
        setting.x_start_column: "start",
        setting.x_end_column: "end",
        setting.task_column: "task",
        setting.color_column: "color",
    }
    if missing := set(columns) - set(events.columns):
        raise ParameterError(
            f"Missing columns in the frame: {', '.join(sorted(missing))}. Call prepare_timeline_events() first."
        )
    hover = [column for column in hover_columns or HOVER_COLUMNS if column in events]
    renamed = events[[*columns, *hover]].rename(columns=columns)
    chart = themed(frame_timeline(renamed, title, hover, setting.task_height))
    if output_image_path:
        save(chart, Path(output_image_path))
    if setting.plot_format is PlotFormat.HTML:
        return page_of(chart, title)
    return chart


class Timeline:
    """Timeline of the events of a frame: ``Timeline(frame, symbols).plot("Step 3")``.

    Args:
        timeline_events: Frame of events.
        symbol_table: Symbol table of the ids in ``name`` and ``cat``.
        filter_func: Filter of the events to show.
        setting: Settings of the timeline.
        hover_columns: Columns for the tooltip.
    """

    def __init__(
        self,
        timeline_events: pd.DataFrame,
        symbol_table: TraceSymbolTable,
        filter_func: Filter | None = None,
        setting: TimelinePlotSetting = _SETTING,
        hover_columns: list[str] | None = None,
    ) -> None:
        self.symbol_table = symbol_table
        self.setting = setting
        self.hover_columns = hover_columns or HOVER_COLUMNS
        self.timeline_events = timeline_events
        self.prepare(filter_func)

    @staticmethod
    def is_timeline_events(df: pd.DataFrame, setting: TimelinePlotSetting) -> bool:
        """Return whether a frame already has starts, ends and lanes."""
        made = {setting.task_column, setting.x_start_column, setting.x_end_column}
        return made <= set(df.columns)

    def prepare(self, filter_func: Filter | None = None) -> None:
        """Filter the events, and add start, end and lane unless the events already have them.

        Args:
            filter_func: Filter of the events to show; default: all.
        """
        events = self.timeline_events
        if self.is_timeline_events(events, self.setting):
            return
        chosen = filter_func(events, self.symbol_table) if filter_func else events
        self.timeline_events = prepare_timeline_events(
            chosen, self.setting, self.symbol_table, self.hover_columns
        )

    def plot(self, title: str, save_path: str | None = None) -> alt.TopLevelMixin | str | None:
        """Draw the timeline; see :func:`plot_events_timeline`."""
        return plot_events_timeline(
            title, self.timeline_events, self.setting, self.hover_columns, save_path
        )


def _lanes(events: pd.DataFrame, setting: TimelinePlotSetting) -> pd.Series:
    """Return the lane label of each event: its trace, rank, stream, thread or depth."""
    words = pd.Series([""] * len(events), index=events.index)
    for column, width, tells in (
        ("trace", 0, setting.multi_traces),
        ("rank", 3, setting.multi_ranks),
    ):
        if tells and column in events:
            words += [f"{column} {str(value).zfill(width)} " for value in events[column]]
    if (
        setting.event_type is EventType.CPUEvents
        and "tid" in events
        and not setting.compress_threads
    ):
        words += [f"tid {tid} " for tid in events["tid"]]
    one_lane = setting.event_type is EventType.GPUEvents and not setting.multi_streams
    if one_lane and words.ne("").all() and not setting.auto_detect:
        return words.str.rstrip()
    streams = events.get("stream", pd.Series(HOST_STREAM, index=events.index))
    depths = events.get("depth", pd.Series(-1, index=events.index))
    return words + [_lane(int(s), int(d)) for s, d in zip(streams, depths, strict=True)]


def _lane(stream: int, depth: int) -> str:
    if stream == ANNOTATION_STREAM:
        return "gpu annotate"
    if stream != HOST_STREAM:
        return f"gpu stream {stream:03d}"
    return "cpu events" if depth < 0 else f"cpu level {depth:03d}"
