"""Timelines of device activity over ranks, with HTA's call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.timeline import plot_events_timeline, simplify_name
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable

if TYPE_CHECKING:
    import altair as alt

__all__ = ["plot_timeline_gpu_kernels"]

_NEEDED = ("iteration", "name", "cat", "rank", "stream", "ts", "dur")


def plot_timeline_gpu_kernels(  # noqa: PLR0917 - HTA's signature
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> alt.TopLevelMixin | str | None:
    """Draw the device activity of a frame: a lane for each rank and stream.

    Args:
        title: Title of the chart.
        df: Frame with ``iteration, name, cat, rank, stream, ts, dur``.
        symbol_table: What the numbers in ``name`` and ``cat`` stand for.
        ranks: Ranks; default: all.
        iterations: Profiler steps; default: all (what lies outside of steps is left out).
        streams: Streams; default: all.
        duration_threshold: Shorter events are drawn that long [µs].

    Returns:
        The chart, which a notebook shows; None where there are no such events.

    Raises:
        ParameterError: A column is missing.
    """
    if missing := set(_NEEDED) - set(df.columns):
        raise ParameterError(f"The frame has no {', '.join(sorted(missing))}.")
    kept = (df["stream"] >= 0) & (df["iteration"] >= 0)
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        if wanted is not None:
            kept &= df[column].isin(wanted)
    events = df[kept].sort_values(["rank", "stream", "ts"], kind="stable")
    symbols = symbol_table.get_sym_table()
    lanes = zip(events["rank"], events["stream"], strict=True)
    drawn = pd.DataFrame(
        {
            **{column: events[column] for column in ("rank", "iteration", "stream", "cat")},
            "name": [simplify_name(symbols[number]) for number in events["name"]],
            "calibrated_start_global": events["ts"],
            "calibrated_end_global": events["ts"] + events["dur"].clip(lower=duration_threshold),
            "task": [f"rank {rank} stream {stream}" for rank, stream in lanes],
        }
    )
    return plot_events_timeline(title, drawn)
