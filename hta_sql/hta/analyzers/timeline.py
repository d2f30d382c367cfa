"""Plot timelines of GPU activity across ranks, with HTA's function signature."""

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
    """Draw the GPU activity of a frame, with one lane per rank and stream.

    Args:
        title: Title of the chart.
        df: Frame with ``iteration, name, cat, rank, stream, ts, dur``.
        symbol_table: Symbol table of the ids in ``name`` and ``cat``.
        ranks: Ranks to draw; default: all.
        iterations: Profiler steps to draw; default: all. Events outside of steps are never drawn.
        streams: Streams to draw; default: all.
        duration_threshold: Minimum length with which an event is drawn [µs].

    Returns:
        The chart, which a notebook displays, or None if no events match.

    Raises:
        ParameterError: A column is missing.
    """
    if missing := set(_NEEDED) - set(df.columns):
        raise ParameterError(f"Missing columns in the frame: {', '.join(sorted(missing))}.")
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
