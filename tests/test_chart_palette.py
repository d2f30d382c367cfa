"""Colours of charts: one for each thing, wherever it is drawn, and letters on them can be read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from operator import mul
from pkgutil import walk_packages

from hta_sql import charts
from hta_sql.charts.drawing.palette import DARK, ON_COLOUR, WAIT_COLOUR, ramp

SAME = {
    "host operator": "operator",
    "python": "Python",
    "runtime": "runtime call",
    "data loader": "data loading",
    "GPU idle": "idle",
}
"""What is called otherwise in some chart."""

NO_THING = {"other", "unknown", "not known", "not told", "(others)", "yes", "no"}
WAITING = re.compile("wait|receives|synchronisation")
ITS_OWN = {"slow everywhere", "autograd", "communication+memory"}
"""Amber too: a warning, and parts of two palettes in which nothing waits."""


def palettes() -> Iterator[tuple[str, str]]:
    """Words and their colour, of all palettes of all figures."""
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


def test_a_thing_has_one_colour() -> None:
    """What one chart teaches holds in the next one."""
    found = defaultdict(set)
    for word, colour in palettes():
        if word not in NO_THING:
            found[SAME.get(word, word)].add(colour)
    assert len(found) > 50
    assert {word: colours for word, colours in found.items() if len(colours) > 1} == {}


def test_amber_is_waiting() -> None:
    """Nothing that is as it should be has the colour of it."""
    amber = {word for word, colour in palettes() if colour == WAIT_COLOUR} - ITS_OWN
    assert "wait" in amber
    assert {word for word in amber if not WAITING.search(word)} == set()


def light(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(sum(map(mul, (0.2126, 0.7152, 0.0722), linear)))


def test_what_stands_on_a_colour_is_read() -> None:
    """White or nearly black, with a contrast of at least 4.5 as small letters need."""
    for word, colour in palettes():
        ink, ground = light("#ffffff" if colour in DARK else ON_COLOUR), light(colour)
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.5, (word, colour)


def test_a_ramp_goes_from_paper_to_ink() -> None:
    """By its colour: in the dark it is turned round, and begins there."""
    pale, colour, deep = ramp(WAIT_COLOUR)
    assert colour == WAIT_COLOUR
    assert light(pale) > 0.8 > light(colour) > 0.1 > light(deep)
