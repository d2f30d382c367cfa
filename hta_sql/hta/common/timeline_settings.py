"""How a timeline of a frame looks, and what of that the frame itself says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pandas as pd

from hta_sql.hta.common.types import HOST_STREAM

ANNOTATION_STREAM = -2
"""Where align_module_with_kernels puts calls; HTA's 0 is a real stream on ROCm."""


class EventType(Enum):
    """What a frame has events of."""

    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


class PlotFormat(Enum):
    """What drawing a timeline returns: a chart, or its page as text; a file has both."""

    HTML = "html"
    Inline = "inline"
    File = "file"


@dataclass
class TimelinePlotSetting:
    """How a timeline looks.

    Attributes:
        auto_detect: Let the frame say ``event_type`` and what lanes are told apart by.
        event_type: What the frame has events of.
        multi_ranks: Tell lanes apart by ``rank``.
        multi_traces: Tell lanes apart by ``trace``.
        multi_streams: Tell lanes of device activity apart by ``stream``.
        x_start_column: Column that starts are written to.
        x_end_column: Column that ends are written to.
        task_column: Column that lanes are written to.
        color_column: Column that colors go by.
        task_height: Height of a lane [pixels].
        amplify_short_events: Draw short events longer, so that they can be seen.
        short_events_display_duration: Length that they get [µs].
        use_global_time: Keep times as they are; else the first event starts at 0.
        plot_format: Inline: return the chart, which a notebook shows; HTML: return a page that needs
            no network, as text; File: only write the file.
        compress_threads: Put the threads of the host into one lane per depth; else each has its own.
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
    """Say whether a frame has device activity, host events or both."""
    on_host = events["stream"] == HOST_STREAM if "stream" in events else pd.Series([True])
    if on_host.all():
        return EventType.CPUEvents
    return EventType.AllEvents if on_host.any() else EventType.GPUEvents


def auto_detect_setting(events: pd.DataFrame, setting: TimelinePlotSetting) -> None:
    """Set what a frame says, where ``auto_detect`` is set: events, ranks, traces, streams."""
    if not setting.auto_detect:
        return
    setting.event_type = event_type_of(events)
    setting.multi_ranks = _has_several(events, "rank")
    setting.multi_traces = _has_several(events, "trace")
    setting.multi_streams = _has_several(events, "stream")


def _has_several(events: pd.DataFrame, column: str) -> bool:
    return column in events and len(events[column].unique()) > 1
