"""Convert the result of an analysis to an altair chart, without SQL and without displaying it.

``draw(result)`` draws the chart of an analysis, from a table with the analysis's own columns (times
in ns), so notebooks, the report and the command line show the same picture. Most charts are
declared in the header of their analysis (:mod:`hta_sql.charts.declared`). The others are functions
with the name of their analysis in the module or package of its topic, decorated with
:func:`~hta_sql.charts.drawing.figures.figure`.

Common options have the same meaning in all figures: ``percent`` draws only shares (True), only
times (False) or both (None); ``top`` is the maximum number of bars. ``save(chart, path)`` writes a
chart as a page, a picture or data.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from hta_sql.errors import ExtraNotInstalledError, ParameterError, nearest
from hta_sql.library.chart_header import has_chart
from hta_sql.library.objects import load_library

try:
    from hta_sql.charts import (
        communication,
        compare,
        kernels,
        launch,
        memory,
        operators,
        path,
        serving,
        timeline,
    )
    from hta_sql.charts.declared import draw_declared
    from hta_sql.charts.drawing.figures import FIGURES, Figure
    from hta_sql.charts.drawing.style import nothing, readable
    from hta_sql.charts.export import save
    from hta_sql.charts.shown import themed
except ModuleNotFoundError as missing:  # altair or one of its dependencies
    if (missing.name or "").startswith("hta_sql"):
        raise
    raise ExtraNotInstalledError(
        f"Charts need {missing.name}, which is not installed: pip install altair vl-convert-python"
    ) from missing

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from hta_sql.library.objects import SqlObject

__all__ = ["FIGURES", "Drawable", "draw", "figure_of", "save", "side_by_side"]

TOPICS = (
    communication,
    compare,
    kernels,
    launch,
    memory,
    operators,
    path,
    serving,
    timeline,
)
"""Modules or packages of the topics of analyses; importing one registers its figures."""


for _analysis in filter(has_chart, load_library().newest()):
    FIGURES[_analysis.base_name] = partial(draw_declared, _analysis)


class Drawable(Protocol):
    """Input of a chart: :class:`hta_sql.results.result.Result`, or similar rows."""

    @property
    def analysis(self) -> SqlObject | None:
        """The analysis of the rows; its name selects the figure."""

    @property
    def drawn_from(self) -> Drawable | None:
        """The result to draw instead of this one."""

    def df(self) -> pd.DataFrame:
        """Return the rows."""

    def __len__(self) -> int: ...


def figure_of(analysis: SqlObject) -> Figure | None:
    """Return the function that draws an analysis from its rows; None if it has no chart."""
    if has_chart(analysis):
        return partial(draw_declared, analysis)
    return FIGURES.get(analysis.base_name)


def draw(result: Drawable, **options: Any) -> alt.TopLevelMixin:
    """Draw the result of an analysis.

    Args:
        result: A result of :meth:`hta_sql.TraceStore.run`.
        **options: Options of the figure, for example ``percent=False``.

    Returns:
        An altair chart: ``.save("chart.html")``, ``.to_json()``, or displayed by a notebook. Names
        in it have no control characters and at most 300 characters.

    Raises:
        ParameterError: There is no figure for this result, or it does not have that option.
    """
    if result.drawn_from is not None:
        return draw(result.drawn_from, **options)
    name = result.analysis.base_name if result.analysis else "a query"
    figure = figure_of(result.analysis) if result.analysis else None
    if figure is None:
        known = sorted(FIGURES)
        raise ParameterError(
            f"There is no chart for {name}.{nearest(name, known)} Available: {', '.join(known)}."
        )
    if result.analysis and not len(result):
        needs = result.analysis.facts.get("Needs", "nothing")
        why = (
            f"Nothing to show: {name} needs {needs}." if needs != "nothing" else "Nothing to show."
        )
        return themed(nothing(result.analysis.summary, why))
    try:
        chart = figure(readable(result.df()), **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ParameterError(f"Cannot draw the chart for {name}: {error}.") from error
    return themed(chart)


def side_by_side(table: pd.DataFrame, title: str, axis: str, *, format_: str) -> alt.TopLevelMixin:
    """Draw grouped bars of a control, a test and their difference.

    Args:
        table: Names, then a column for each of the three.
        title: Title of the chart.
        axis: Title of the value axis.
        format_: Number format.
    """
    return themed(compare.side_by_side(readable(table), title, axis, format_=format_))
