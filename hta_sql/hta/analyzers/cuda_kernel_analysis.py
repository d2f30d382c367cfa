"""Launches, kernel sequences and what operators launch, of a Trace."""

from __future__ import annotations

import os

import pandas as pd

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace

__all__ = ["CudaKernelAnalysis"]


class CudaKernelAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def cuda_kernel_launch_stats(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        ranks: list[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,
        visualize: bool | None = None,
    ) -> dict[int, pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_cuda_kernel_launch_stats`."""
        return over(t).get_cuda_kernel_launch_stats(
            ranks, runtime_cutoff, launch_delay_cutoff, include_memory_events, visualize
        )

    @classmethod
    def get_aten_op_kernels_and_delay(
        cls, trace: Trace, ranks: list[int] | None = None, sort_by: list[str] | None = None
    ) -> dict[int, pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_aten_op_kernels_and_delay`."""
        return over(trace).get_aten_op_kernels_and_delay(ranks, sort_by)

    @classmethod
    def get_frequent_cuda_kernel_sequences(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        operator_name: str,
        output_dir: str | os.PathLike[str] | None,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool | None = None,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        """See :meth:`hta_sql.TraceAnalysis.get_frequent_cuda_kernel_sequences`."""
        return over(t).get_frequent_cuda_kernel_sequences(
            operator_name,
            output_dir,
            min_pattern_len,
            rank,
            top_k,
            visualize,
            compress_other_kernels,
        )
