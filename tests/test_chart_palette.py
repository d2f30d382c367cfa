"""Tests of chart colors: each thing has the same color in all charts, and text is readable."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from operator import mul
from pkgutil import walk_packages

from hta_sql import charts
from hta_sql.charts.drawing.palette import DARK, ON_COLOR, WAIT_COLOR, named_parts, ramp
from hta_sql.library.chart_header import chart_of, has_chart
from hta_sql.library.objects import load_library

SAME = {
    "host operator": "operator",
    "python": "Python",
    "runtime": "runtime call",
    "data loader": "data loading",
    "GPU idle": "idle",
}
"""Names that differ between charts, and the name to which each corresponds."""

NO_THING = {"other", "unknown", "not known", "not told", "(others)", "yes", "no"}
WAITING = re.compile("wait|receives|synchronization")
ITS_OWN = {"slow on all ranks", "autograd", "communication+memory", "intermittent"}
"""Labels drawn in amber that do not mean waiting.

Amber also marks warnings, ranks that are late at times, and parts of two palettes without waits.
"""


def palettes() -> Iterator[tuple[str, str]]:
    """Yield each label and its color from the palettes of all figures and declared charts."""
    modules = [
        import_module(found.name)
        for found in walk_packages(charts.__path__, f"{charts.__name__}.")
        if not found.ispkg
    ]
    for module in modules:
        for palette in vars(module).values():
            for word, about in palette.items() if isinstance(palette, dict) else ():
                pair = about if isinstance(about, tuple) else (word, about)
                if len(pair) == 2 and re.fullmatch("#[0-9A-Fa-f]{6}", str(pair[1])):
                    yield pair
    for about in filter(has_chart, load_library().newest()):
        chart = chart_of(about)
        for parts in (chart.get("parts", {}), *chart.get("panels", {}).values()):
            yield from named_parts(parts).values()


def test_a_thing_has_one_color() -> None:
    """The same thing has the same color in every chart."""
    found = defaultdict(set)
    for word, color in palettes():
        if word not in NO_THING:
            found[SAME.get(word, word)].add(color)
    assert len(found) > 50
    assert {word: colors for word, colors in found.items() if len(colors) > 1} == {}


def test_amber_is_waiting() -> None:
    """Amber means waiting in every chart, apart from the exceptions in ``ITS_OWN``."""
    amber = {word for word, color in palettes() if color == WAIT_COLOR} - ITS_OWN
    assert "wait" in amber
    assert {word for word in amber if not WAITING.search(word)} == set()


def light(color: str) -> float:
    """Return the relative luminance of a color as WCAG defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(sum(map(mul, (0.2126, 0.7152, 0.0722), linear)))


def test_what_stands_on_a_color_is_read() -> None:
    """Text on a colored background has a contrast of at least 4.5."""
    for word, color in palettes():
        ink, ground = light("#ffffff" if color in DARK else ON_COLOR), light(color)
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5, (word, color)


def test_a_ramp_goes_from_paper_to_ink() -> None:
    """A color ramp starts near the paper color and ends near black."""
    pale, color, deep = ramp(WAIT_COLOR)
    assert color == WAIT_COLOR
    assert light(pale) > 0.8 > light(color) > 0.1 > light(deep)
