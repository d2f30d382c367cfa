"""Charts: the result table of an analysis in, an altair chart out. No SQL, no files, no display.

``draw(result)`` finds the figure of an analysis by its name. Each figure is one function of
the analysis's own columns (ns), so that notebooks, the report and the command line show the
same picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hta_sql.charts.communication import comm_comp_overlap
from hta_sql.charts.kernels import gpu_kernel_types, gpu_kernels_by_name
from hta_sql.charts.launches import cuda_kernel_launch_stats
from hta_sql.charts.timeline import idle_time_breakdown, temporal_breakdown
from hta_sql.errors import ParameterError

if TYPE_CHECKING:
    import altair as alt

    from hta_sql.result import Result

__all__ = [
    "FIGURES",
    "comm_comp_overlap",
    "cuda_kernel_launch_stats",
    "draw",
    "gpu_kernel_types",
    "gpu_kernels_by_name",
    "idle_time_breakdown",
    "temporal_breakdown",
]

FIGURES: dict[str, Callable[..., alt.TopLevelMixin]] = {
    "comm_comp_overlap": comm_comp_overlap,
    "cuda_kernel_launch_stats": cuda_kernel_launch_stats,
    "gpu_kernel_types": gpu_kernel_types,
    "gpu_kernels_by_name": gpu_kernels_by_name,
    "idle_time_breakdown": idle_time_breakdown,
    "temporal_breakdown": temporal_breakdown,
}
"""Name of an analysis ─▶ its figure."""


def draw(result: Result, **options: Any) -> alt.TopLevelMixin:
    """Draw the result of an analysis.

    Args:
        result: What :meth:`hta_sql.TraceStore.run` returned.
        **options: Options of the figure, for example ``percent=False``.

    Returns:
        An altair chart: ``.save("chart.html")``, ``.to_json()``, or shown by a notebook.

    Raises:
        ParameterError: No figure is known for this result.
    """
    name = result.analysis.base_name if result.analysis else "a query"
    if name not in FIGURES:
        raise ParameterError(f"There is no chart of {name}; there is one of: {', '.join(FIGURES)}.")
    return FIGURES[name](result.df(), **options)
