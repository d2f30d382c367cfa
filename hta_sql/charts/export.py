"""Writes a chart to a file: an offline page, a picture, or Vega-Lite data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from hta_sql.charts.drawing.chart import share
from hta_sql.charts.drawing.style import ZOOM
from hta_sql.charts.page import page_of_chart
from hta_sql.errors import ParameterError
from hta_sql.traces.writing import replacing

SUFFIXES = (".html", ".png", ".svg", ".json")
SCALE = 2
"""Pixels of a picture per point, for high-resolution screens."""


def save(chart: alt.TopLevelMixin, path: Path, title: str = "Chart") -> None:
    """Write a chart to a file; the suffix selects the format. Nothing is fetched from the network.

    Args:
        chart: A chart from :func:`hta_sql.charts.draw`.
        path: ``.html`` (a self-contained page), ``.png``, ``.svg`` or ``.json`` (Vega-Lite).
        title: Title of the page.

    Raises:
        ParameterError: The suffix is not supported.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ParameterError(
            f"Cannot write a chart to {path.name!r}: the file name must end in {', '.join(SUFFIXES)}."
        )
    written = content(spec_of(chart), suffix, title)
    with replacing(path) as partial:
        partial.write_bytes(written)


def spec_of(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Return a chart as Vega-Lite.

    The parts of a chart were validated when they were created. Validating the whole chart again
    would take most of the time.
    """
    share(chart, shared=True)
    try:
        spec: dict[str, Any] = json.loads(chart.to_json(indent=None, validate=False))
    finally:
        share(chart, shared=False)
    _scrollable(spec)
    return spec


def _scrollable(view: dict[str, Any]) -> None:
    """Restrict zooming to Ctrl + wheel, so that the wheel alone scrolls the page."""
    for parameter in view.get("params", ()):
        if parameter.get("bind") == "scales":
            select = parameter["select"]
            select = {"type": select} if isinstance(select, str) else select
            parameter["select"] = {"zoom": ZOOM, **select}
    for parts in ("hconcat", "vconcat", "concat", "layer"):
        for part in view.get(parts, ()):
            _scrollable(part)
    if isinstance(view.get("spec"), dict):
        _scrollable(view["spec"])


def content(spec: dict[str, Any], suffix: str, title: str) -> bytes:
    """Encode a chart in the format that a suffix selects."""
    if suffix == ".png":
        return vl_convert.vegalite_to_png(spec, scale=SCALE)
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if suffix == ".json":
        return json.dumps(spec, indent=1).encode()
    return page_of_chart(title, spec).encode()


def page_of(chart: alt.TopLevelMixin, title: str = "Chart") -> str:
    """Return a self-contained HTML page with a chart."""
    return page_of_chart(title, spec_of(chart))
