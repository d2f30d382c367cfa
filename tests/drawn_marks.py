"""Render a chart without a browser and count its marks."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
from collections import Counter
from typing import TYPE_CHECKING, Any

import vl_convert

from hta_sql.charts.export import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import altair as alt

_BAR = re.compile(r"M[^h]*h(-?[\d.e-]+)v(-?[\d.e-]+)")
_THIN = 0.01
"""Minimum visible length of a bar [pixels]."""


def drawn_rows(chart: alt.TopLevelMixin) -> list[dict[str, Any]]:
    """Return the data rows of all panels of a chart."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def charts_in(page: str) -> dict[str, dict[str, Any]]:
    """Return the charts of a page by name, with rows as its script computes them."""
    found = re.findall(
        r'<script type="application/json" id="([^"]+)">(.*?)</script>', page, re.DOTALL
    )
    specs = {key: json.loads(spec) for key, spec in found}
    for spec in specs.values():
        spec["datasets"] = {
            key: [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
            for key, table in spec["datasets"].items()
        }
    return specs


def visible_marks(chart: alt.TopLevelMixin) -> Counter[str]:
    """Count the visible marks of a chart by kind.

    Kinds are rect (bars and ticks), rule, symbol, arc, line, area and text.
    """
    return picture_marks(vl_convert.vegalite_to_svg(spec_of(chart)))


def picture_marks(svg: str | bytes) -> Counter[str]:
    """Count the visible marks by kind in a chart saved as ``.svg``."""
    picture = ET.fromstring(svg)  # noqa: S314 - our own
    return Counter(kind for kind, mark in _marks(picture) if _is_visible(kind, mark))


def _marks(picture: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    for group in picture.iter():
        kind, *classes = (group.get("class") or "-").split()
        if "role-mark" in classes:
            yield from ((kind.removeprefix("mark-"), mark) for mark in group)


def _is_visible(kind: str, mark: ET.Element) -> bool:
    path = mark.get("d", "")
    if kind == "text":
        return bool(mark.text)
    if kind == "rule":
        return abs(float(mark.get("x2", 0))) > _THIN or abs(float(mark.get("y2", 0))) > _THIN
    if kind == "rect":
        bar = _BAR.match(path)
        return bar is not None and min(abs(float(bar[1])), abs(float(bar[2]))) > _THIN
    return bool(path) and "NaN" not in path


def size_of_png(png: bytes) -> tuple[int, int]:
    """Return the width and height of a complete PNG picture."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", png[16:24])
    return width, height
