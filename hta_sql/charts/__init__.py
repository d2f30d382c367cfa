"""Charts: the result table of an analysis in, an altair chart out. No SQL, no files, no display.

``draw(result)`` finds the figure of an analysis by its name. Each figure is one function of
the analysis's own columns (ns), so that notebooks, the report and the command line show the
same picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hta_sql.charts import communication, kernels, launches, timeline
from hta_sql.errors import ParameterError

if TYPE_CHECKING:
    import altair as alt

    from hta_sql.result import Result

__all__ = ["FIGURES", "draw"]

FIGURES: dict[str, Callable[..., alt.TopLevelMixin]] = {
    name: getattr(topic, name)
    for topic in (communication, kernels, launches, timeline)
    for name in topic.__all__
}
"""Name of an analysis ─▶ its figure: each topic lists its own."""


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
