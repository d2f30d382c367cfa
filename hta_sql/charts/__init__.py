"""Charts: the result table of an analysis in, an altair chart out. No SQL, no display.

``draw(result)`` finds the figure of an analysis by its name. Each figure is one function of a table with the
analysis's own columns (ns), so that notebooks, the report and the command line show the same picture. It stands in
the module or package of its topic, decorated with :func:`~hta_sql.charts.drawing.figures.figure`.
Options have one meaning in all of them: ``percent`` draws shares only, or times only, or, with None, both;
``top`` is how many bars there are. ``save(chart, path)`` writes it as a page, a picture or data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from hta_sql.errors import ExtraNotInstalledError, ParameterError, nearest

try:
    from hta_sql.charts import (
        communication,
        compare,
        kernels,
        launch,
        memory,
        modules,
        operators,
        path,
        serving,
        timeline,
    )
    from hta_sql.charts.drawing.figures import FIGURES
    from hta_sql.charts.drawing.style import nothing, readable
    from hta_sql.charts.export import save
    from hta_sql.charts.shown import themed
except ModuleNotFoundError as missing:  # altair or what it needs
    if (missing.name or "").startswith("hta_sql"):
        raise
    raise ExtraNotInstalledError(
        f"Charts need {missing.name}, which is not installed: pip install altair vl-convert-python"
    ) from missing

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from hta_sql.library.objects import SqlObject

__all__ = ["FIGURES", "Drawable", "draw", "save", "side_by_side"]

TOPICS = (
    communication,
    compare,
    kernels,
    launch,
    memory,
    modules,
    operators,
    path,
    serving,
    timeline,
)
"""A module or a package for each topic of the analyses; its import registers its figures."""


class Drawable(Protocol):
    """What can be drawn: :class:`hta_sql.results.result.Result`, or rows that look like one."""

    @property
    def analysis(self) -> SqlObject | None:
        """The analysis that the rows come from; its name chooses the figure."""

    @property
    def drawn_from(self) -> Drawable | None:
        """The result to draw in place of this one."""

    def df(self) -> pd.DataFrame:
        """Return the rows."""

    def __len__(self) -> int: ...


def draw(result: Drawable, **options: Any) -> alt.TopLevelMixin:
    """Draw the result of an analysis.

    Args:
        result: What :meth:`hta_sql.TraceStore.run` returned.
        **options: Options of the figure, for example ``percent=False``.

    Returns:
        An altair chart: ``.save("chart.html")``, ``.to_json()``, or shown by a notebook. Names
        in it have no control characters and at most 300 characters.

    Raises:
        ParameterError: No figure is known for this result, or it does not have that option.
    """
    if result.drawn_from is not None:
        return draw(result.drawn_from, **options)
    name = result.analysis.base_name if result.analysis else "a query"
    if name not in FIGURES:
        known = sorted(FIGURES)
        raise ParameterError(
            f"There is no chart of {name}.{nearest(name, known)} There is one of: {', '.join(known)}."
        )
    if result.analysis and not len(result):
        needs = result.analysis.facts.get("Needs", "nothing")
        why = (
            f"Nothing to show: {name} needs {needs}." if needs != "nothing" else "Nothing to show."
        )
        return themed(nothing(result.analysis.summary, why))
    try:
        chart = FIGURES[name](readable(result.df()), **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ParameterError(f"The chart of {name}: {error}.") from error
    return themed(chart)


def side_by_side(table: pd.DataFrame, title: str, axis: str, *, format_: str) -> alt.TopLevelMixin:
    """Draw grouped bars of a control, a test and their difference.

    Args:
        table: Names, then a column for each of the three.
        title: What it shows.
        axis: What the length of a bar is.
        format_: How numbers are written.
    """
    return themed(compare.side_by_side(readable(table), title, axis, format_=format_))
