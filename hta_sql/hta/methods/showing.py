"""Shows the chart of a result: in a notebook inline, in a script as an HTML file."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hta_sql.results.result import Result

log = logging.getLogger(__name__)

PICTURES = {"svg": "svg"} | dict.fromkeys(("png", "jpeg", "jpg", "pdf"), "png")
"""Renderers of plotly's that HTA's users ask pictures of ─▶ the picture they get."""


def in_notebook() -> bool:
    """Say whether this runs in a kernel that displays rich output."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def display(chart: object, picture: str | None = None) -> None:
    """Show a chart in the notebook; as a picture, ``png`` or ``svg``, where one is named."""
    import altair as alt  # noqa: PLC0415 - only where a chart is wanted
    from IPython import (  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - a notebook has it
        display as notebook,
    )

    with alt.renderers.enable(picture or alt.renderers.active):
        notebook.display(chart)


def is_wanted(visualize: bool | None) -> bool:
    """Say whether a chart is shown: True: always; False: never; None: in a notebook only."""
    return in_notebook() if visualize is None else visualize


def show(
    result: Result,
    visualize: bool | None,
    store: Path,
    image_renderer: str | None = None,
    **options: Any,
) -> None:
    """Show the chart of an analysis, if wanted.

    Args:
        result: Result of an analysis that has a chart.
        visualize: See :func:`is_wanted`.
        store: In a script the chart is saved as ``charts/<analysis>.html`` in this folder, and
            its path is logged. The file needs no network.
        image_renderer: ``png`` or ``svg`` shows and saves a picture; any other of plotly's
            renderers leaves the choice to the notebook.
        **options: Options of the figure.
    """
    if not is_wanted(visualize):
        return
    from hta_sql.charts import draw, save  # noqa: PLC0415 - altair only where a chart is wanted

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
