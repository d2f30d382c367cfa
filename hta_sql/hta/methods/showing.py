"""Show the chart of a result: inline in a notebook, as an HTML file in a script."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hta_sql.results.result import Result

log = logging.getLogger(__name__)

PICTURES = {"svg": "svg"} | dict.fromkeys(("png", "jpeg", "jpg", "pdf"), "png")
"""Image renderers of plotly that HTA's users request ─▶ the image format they get."""


def in_notebook() -> bool:
    """Return whether the code runs in a kernel that displays rich output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def display(chart: object, picture: str | None = None) -> None:
    """Show a chart in the notebook, as a ``png`` or ``svg`` image if requested."""
    import altair as alt  # noqa: PLC0415 - altair is needed for charts only
    from IPython import (  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - present in notebooks
        display as notebook,
    )

    with alt.renderers.enable(picture or alt.renderers.active):
        notebook.display(chart)


def is_wanted(visualize: bool | None) -> bool:
    """Return whether to show a chart: True always, False never, None in a notebook only."""
    return in_notebook() if visualize is None else visualize


def show(
    result: Result,
    visualize: bool | None,
    store: Path,
    image_renderer: str | None = None,
    **options: Any,
) -> None:
    """Show the chart of an analysis if requested.

    Args:
        result: Result of an analysis that has a chart.
        visualize: See :func:`is_wanted`.
        store: Folder in which a script saves the chart as ``charts/<analysis>.html``; the path is
            logged. The file needs no network.
        image_renderer: ``png`` or ``svg`` shows and saves an image; any other renderer of plotly
            leaves the choice to the notebook.
        **options: Options of the figure.
    """
    if not is_wanted(visualize):
        return
    from hta_sql.charts import draw, save  # noqa: PLC0415 - altair is needed for charts only

    picture = PICTURES.get(image_renderer or "")
    chart = draw(result, **options)
    if in_notebook():
        display(chart, picture)
        return
    name = result.analysis.base_name if result.analysis else "query"
    path = store / "charts" / f"{name}.{picture or 'html'}"
    try:
        path.parent.mkdir(exist_ok=True)
        save(chart, path, result.analysis.summary if result.analysis else name)
    except OSError as error:
        log.warning("Could not save the chart of %s: %s.", name, error)
    else:
        log.info("Saved the chart of %s: %s", name, path)
