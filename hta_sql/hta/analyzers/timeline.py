"""Timelines of device activity over ranks, with HTA's functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.timeline import plot_events_timeline, simplify_name
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "plot_timeline",
    "plot_timeline_gpu_kernels",
    "plot_timeline_gpu_kernels_from_trace",
    "prepare_timeline_gpu_events",
]


def prepare_timeline_gpu_events(  # noqa: PLR0917 - HTA's signature
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> pd.DataFrame:
    """Choose device activity and give it start, end, lane and short names.

    Args:
        df: Frame with ``iteration, name, cat, rank, stream, ts, dur``.
        symbol_table: What the numbers in ``name`` and ``cat`` stand for.
        ranks: Ranks; default: all.
        iterations: Profiler steps; default: all (what lies outside of steps is left out).
        streams: Streams; default: all.
        duration_threshold: Shorter events are drawn that long [µs].

    Returns:
        The events by rank, stream and start, with ``s_name, s_cat, calibrated_start_global,
        calibrated_end_global, label, task``.

    Raises:
        ParameterError: A column is missing.
    """
    needed = {"iteration", "name", "cat", "rank", "stream", "ts", "dur"}
    if missing := needed - set(df.columns):
        raise ParameterError(f"The frame has no {', '.join(sorted(missing))}.")
    kept = (df["stream"] >= 0) & (df["iteration"] >= 0)
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        if wanted is not None:
            kept &= df[column].isin(wanted)
    events = df[kept].reset_index(drop=True)
    symbols = symbol_table.get_sym_table()
    events["s_name"] = [simplify_name(symbols[number]) for number in events["name"]]
    events["s_cat"] = [symbols[number] for number in events["cat"]]
    shown = events["dur"].clip(lower=duration_threshold)
    events["calibrated_start_global"] = pd.to_datetime(events["ts"], unit="us")
    events["calibrated_end_global"] = pd.to_datetime(events["ts"] + shown, unit="us")
    events["label"] = events["s_name"]
    lanes = zip(events["rank"], events["stream"], strict=True)
    events["task"] = [f"rank {rank} stream {stream}" for rank, stream in lanes]
    return events.sort_values(["rank", "stream", "ts"], kind="stable")


def plot_timeline(
    title: str, events: pd.DataFrame, ranks: list[int] | None = None
) -> alt.TopLevelMixin | str:
    """Draw events that :func:`prepare_timeline_gpu_events` made.

    Args:
        title: Title of the chart.
        events: The events.
        ranks: Ranks to draw; default: all.
    """
    shown = events if ranks is None else events[events["rank"].isin(ranks)]
    return plot_events_timeline(title, shown.drop(columns="name").rename(columns={"label": "name"}))


def plot_timeline_gpu_kernels(  # noqa: PLR0917 - HTA's signature
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> alt.TopLevelMixin | str:
    """Draw the device activity of a frame; see :func:`prepare_timeline_gpu_events`."""
    events = prepare_timeline_gpu_events(
        df, symbol_table, ranks, iterations, streams, duration_threshold
    )
    return plot_timeline(title, events)


def plot_timeline_gpu_kernels_from_trace(  # noqa: PLR0917 - HTA's signature
    title: str,
    trace_data: Trace,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> alt.TopLevelMixin | str:
    """Draw the device activity of a trace; see :func:`prepare_timeline_gpu_events`."""
    chosen = [rank for rank in trace_data.get_ranks() if ranks is None or rank in ranks]
    frames = [trace_data.get_trace(rank).assign(rank=rank) for rank in chosen]
    df = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return plot_timeline_gpu_kernels(
        title, df, trace_data.symbol_table, chosen, iterations, streams, duration_threshold
    )
