"""Hardware counters of kernels, of a Trace."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace
from hta_sql.hta.methods.cupti import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS

__all__ = ["CUDA_SASS_INSTRUCTION_COUNTER_FLOPS", "CuptiCounterAnalysis"]


class CuptiCounterAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already.

    Attributes:
        cuda_profiler_cat: Category of the ranges that counters were read over.
    """

    cuda_profiler_cat: ClassVar[str] = "cuda_profiler_range"

    @classmethod
    def get_counter_data_with_operators(
        cls, t: Trace, ranks: list[int] | None = None
    ) -> list[pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_cupti_counter_data_with_operators`."""
        return over(t).get_cupti_counter_data_with_operators(ranks)
