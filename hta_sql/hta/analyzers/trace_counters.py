"""Queue lengths and memory bandwidth over time, of a Trace."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.constants import CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.frames.counter_frames import described_series

__all__ = ["TraceCounters"]


class TraceCounters:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def get_queue_length_time_series(
        cls, t: Trace, ranks: list[int] | None = None
    ) -> dict[int, pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_queue_length_time_series`."""
        return over(t).get_queue_length_time_series(ranks)

    @classmethod
    def get_queue_length_summary(
        cls, t: Trace, ranks: list[int] | None = None
    ) -> pd.DataFrame | None:
        """See :meth:`hta_sql.TraceAnalysis.get_queue_length_summary`."""
        return over(t).get_queue_length_summary(ranks)

    @classmethod
    def get_queue_length_summary_from_time_series(
        cls, queue_length_dict: Mapping[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """See :meth:`hta_sql.TraceAnalysis.get_queue_length_summary_from_time_series`."""
        return described_series(queue_length_dict)

    @classmethod
    def get_time_spent_blocked_on_full_queue(
        cls,
        t: Trace,
        queue_length_dict: Mapping[int, pd.DataFrame],
        max_queue_length: int = CUDA_MAX_LAUNCH_QUEUE_PER_STREAM,
    ) -> pd.DataFrame:
        """See :meth:`hta_sql.TraceAnalysis.get_time_spent_blocked_on_full_queue`."""
        return over(t).get_time_spent_blocked_on_full_queue(queue_length_dict, max_queue_length)

    @classmethod
    def get_memory_bw_time_series(
        cls, t: Trace, ranks: list[int] | None = None
    ) -> dict[int, pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_memory_bw_time_series`."""
        return over(t).get_memory_bw_time_series(ranks)

    @classmethod
    def get_memory_bw_summary(cls, t: Trace, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """See :meth:`hta_sql.TraceAnalysis.get_memory_bw_summary`."""
        return over(t).get_memory_bw_summary(ranks)
