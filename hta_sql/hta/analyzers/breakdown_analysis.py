"""Where time goes, of a Trace: idle and busy time, kernels, annotations."""

from __future__ import annotations

import pandas as pd

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace

__all__ = ["BreakdownAnalysis"]


class BreakdownAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def get_temporal_breakdown(cls, t: Trace, visualize: bool | None = None) -> pd.DataFrame:
        """See :meth:`hta_sql.TraceAnalysis.get_temporal_breakdown`."""
        return over(t).get_temporal_breakdown(visualize)

    @classmethod
    def get_gpu_kernel_breakdown(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        visualize: bool | None = None,
        duration_ratio: float = 0.8,
        num_kernels: int | None = 10,
        include_memory_kernels: bool = False,
        image_renderer: str = "notebook",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """See :meth:`hta_sql.TraceAnalysis.get_gpu_kernel_breakdown`.

        Copies and memsets are left out by default here, as in HTA.
        """
        return over(t).get_gpu_kernel_breakdown(
            visualize, duration_ratio, num_kernels, include_memory_kernels, image_renderer
        )

    @classmethod
    def get_idle_time_breakdown(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        consecutive_kernel_delay: float,
        rank: int = 0,
        streams: list[int] | None = None,
        visualize: bool | None = None,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """See :meth:`hta_sql.TraceAnalysis.get_idle_time_breakdown`; this is for one rank."""
        return over(t).get_idle_time_breakdown(
            [rank],
            streams,
            visualize,
            visualize_pctg,
            show_idle_interval_stats,
            consecutive_kernel_delay,
        )

    @classmethod
    def get_gpu_user_annotation_breakdown(  # noqa: PLR0917 - HTA's signature
        cls,
        t: Trace,
        use_gpu_annotation: bool = True,
        visualize: bool | None = None,
        duration_ratio: float = 0.8,
        num_kernels: int | None = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame | None:
        """See :meth:`hta_sql.TraceAnalysis.get_gpu_user_annotation_breakdown`."""
        return over(t).get_gpu_user_annotation_breakdown(
            use_gpu_annotation,
            visualize,
            duration_ratio,
            num_kernels,
            allowlist_patterns,
            image_renderer,
        )

    @classmethod
    def get_gpu_kernels_with_user_annotations(
        cls, t: Trace, rank: int, expand_names: bool = True, shortern_names: bool = True
    ) -> pd.DataFrame | None:
        """See :meth:`hta_sql.TraceAnalysis.get_gpu_kernels_with_user_annotations`."""
        return over(t).get_gpu_kernels_with_user_annotations(rank, expand_names, shortern_names)
