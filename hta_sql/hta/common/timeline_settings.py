"""Define the settings of a frame's timeline, and detect some of them from the frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pandas as pd

HOST_STREAM = -1
ANNOTATION_STREAM = -2
"""Stream that align_module_with_kernels assigns to calls; HTA uses 0, a real stream on ROCm."""


class EventType(Enum):
    """Kinds of events in a frame."""

    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


class PlotFormat(Enum):
    """Result of drawing a timeline: a chart, an HTML page as a string, or only a file."""

    HTML = "html"
    Inline = "inline"
    File = "file"


@dataclass
class TimelinePlotSetting:
    """Settings of a timeline.

    Attributes:
        auto_detect: Detect ``event_type`` and the lane columns from the frame.
        event_type: Kinds of events in the frame.
        multi_ranks: Draw a separate lane for each ``rank``.
        multi_traces: Draw a separate lane for each ``trace``.
        multi_streams: Draw a separate lane of GPU activity for each ``stream``.
        x_start_column: Output column for starts.
        x_end_column: Output column for ends.
        task_column: Output column for lanes.
        color_column: Column that determines colors.
        task_height: Height of a lane [pixels].
        amplify_short_events: Draw short events longer to make them visible.
        short_events_display_duration: Drawn length of short events [µs].
        use_global_time: Keep times unchanged; otherwise the first event starts at 0.
        plot_format: Inline returns the chart, which a notebook displays. HTML returns a page that
            needs no network, as a string. File only writes the file.
        compress_threads: Combine all host threads into one lane per depth; otherwise each thread
            has its own.
    """

    auto_detect: bool = True
    event_type: EventType = EventType.GPUEvents
    multi_ranks: bool = False
    multi_traces: bool = False
    multi_streams: bool = True
    x_start_column: str = "calibrated_start_global"
    x_end_column: str = "calibrated_end_global"
    task_column: str = "task"
    color_column: str = "name"
    task_height: int = 30
    amplify_short_events: bool = True
    short_events_display_duration: int = 1000
    use_global_time: bool = False
    plot_format: PlotFormat = PlotFormat.Inline
    compress_threads: bool = True


def event_type_of(events: pd.DataFrame) -> EventType:
    """Return whether a frame contains GPU activity, host events or both."""
    on_host = events["stream"] == HOST_STREAM if "stream" in events else pd.Series([True])
    if on_host.all():
        return EventType.CPUEvents
    return EventType.AllEvents if on_host.any() else EventType.GPUEvents


def auto_detect_setting(events: pd.DataFrame, setting: TimelinePlotSetting) -> None:
    """Detect event type, ranks, traces and streams from the frame if ``auto_detect`` is set."""
    if not setting.auto_detect:
        return
    setting.event_type = event_type_of(events)
    setting.multi_ranks = _has_several(events, "rank")
    setting.multi_traces = _has_several(events, "trace")
    setting.multi_streams = _has_several(events, "stream")


def _has_several(events: pd.DataFrame, column: str) -> bool:
    return column in events and len(events[column].unique()) > 1
