"""``hta_sql.trace_analysis``: the short way to :mod:`hta_sql.hta.trace_analysis`."""

from __future__ import annotations

from hta_sql.hta.trace_analysis import (
    CUDA_MAX_LAUNCH_QUEUE_PER_STREAM,
    DEFAULT_TRACE_DIR,
    TimeSeriesTypes,
    TraceAnalysis,
)

__all__ = [
    "CUDA_MAX_LAUNCH_QUEUE_PER_STREAM",
    "DEFAULT_TRACE_DIR",
    "TimeSeriesTypes",
    "TraceAnalysis",
]
