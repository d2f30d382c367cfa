"""Format strings for people: scaled numbers, truncated names, no terminal control characters."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

NS = 1000
"""Nanoseconds per microsecond: n / 1000 is the double nearest to the exact time."""

CUT = "…"

TABLE_ROWS = 40
"""Default number of table rows printed on a terminal."""

PLAIN_WIDTH = 200
"""Width if the output is not a terminal and COLUMNS is not set [characters]."""

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_LONGEST_TIME_NS = 30 * 86_400 * 1_000_000_000
"""One month: a larger number of nanoseconds is a timestamp, and is not scaled [ns]."""
_DIGITS_TO = ((2, 9.995), (1, 99.95), (0, math.inf))
"""Decimals ─▶ upper limit of the numbers shown with them: three significant digits."""

_NEXT_UNIT = 999.5

_TAIL_SHARES = (0.5, 0.3, 0.15, 0.0, 0.7, 0.85)
_FRAME = re.compile(r"((?:[A-Za-z]:)?[^:()<>]+\.\w+)(:\d+|\(\d+\):)( .+)")
"""Stack frame: path, line and function, as in ``a/train.py:47 in step`` or ``train.py(47): step``."""


def rank_spans(ranks: Iterable[int], separator: str = ", ") -> str:
    """Format ranks 0, 1, 2, 3, 7 as ``0-3, 7``; command-line options need the separator ``,``."""
    spans: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], rank)
        else:
            spans.append((rank, rank))
    return _span_texts(spans, separator)


def missing_rank_spans(ranks: Iterable[int], size: int) -> str:
    """Format the missing ranks from 0 to size - 1, like :func:`rank_spans`.

    A trace may claim any size, so the missing ranks are never enumerated individually.
    """
    spans, expected = [], 0
    for rank in [*sorted(rank for rank in set(ranks) if 0 <= rank < size), size]:
        if rank > expected:
            spans.append((expected, rank - 1))
        expected = rank + 1
    return _span_texts(spans, ", ")


def _span_texts(spans: Iterable[tuple[int, int]], separator: str) -> str:
    return separator.join(
        f"{first}-{last}" if last > first else str(first) for first, last in spans
    )


def counted(number: int, noun: str) -> str:
    """Format a count: ``1 rank`` or ``1,024 ranks``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first strings and the count of the rest: ``a, b, c and 2 more``."""
    more = len(texts) - most
    return separator.join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def plain_number(value: float) -> str:
    """Format a number with thousands separators; tiny and huge floats get four digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0 or 0.001 <= abs(value) < 10**12:
        return f"{value:,.3f}"
    return f"{value:.4g}"


def time_text(ns: float) -> str:
    """Format nanoseconds in the largest unit that leaves a digit before the point."""
    if abs(ns) >= _LONGEST_TIME_NS:
        return f"{int(ns)} ns"
    for factor, unit in _TIMES:
        if abs(ns) >= factor:
            return f"{ns / factor:,.3f} {unit}"
    return f"{int(ns)} ns" if ns == int(ns) else f"{ns:.3g} ns"


def duration_unit(longest_ns: float) -> tuple[float, str]:
    """Return the unit for times up to a maximum: (ns per unit, name)."""
    return _unit(longest_ns, "ns", ("s", "ms", "µs"))


def size_unit(most: float) -> tuple[float, str]:
    """Return the unit for sizes up to a maximum: (bytes per unit, name)."""
    return _unit(most, "bytes", ("GB", "MB", "kB"))


def _unit(most: float, least: str, names: tuple[str, str, str]) -> tuple[float, str]:
    units = zip((1e9, 1e6, 1e3), names, strict=True)
    return next((unit for unit in units if most >= unit[0]), (1.0, least))


def duration_text(ns: float) -> str:
    """Format a time for a title with three significant digits; ``page.js`` does the same."""
    if abs(ns) >= _LONGEST_TIME_NS:
        return time_text(ns)
    units = ((1, "ns"), (1e3, "µs"), (1e6, "ms"))
    size, unit = next((each for each in units if abs(ns) / each[0] < _NEXT_UNIT), (1e9, "s"))
    number = abs(ns) / size
    is_whole = size == 1 and ns == int(ns)
    digits = 0 if is_whole else next(digits for digits, end in _DIGITS_TO if number < end)
    rounded = math.floor(number * 10**digits + 0.5) / 10**digits
    return f"{'-' * (ns < 0)}{rounded:,.{digits}f} {unit}"


def size_text(size: float) -> str:
    """Format a size in decimal units: 1 GB is 1e9 bytes."""
    for factor, unit in _SIZES:
        if abs(size) >= factor:
            return f"{size / factor:,.3f} {unit}"
    return f"{int(size)} B" if size == int(size) else f"{size:.3g} B"


def printable(text: str) -> str:
    r"""Escape characters that a terminal interprets: ``\x1b`` for ESC, ``\n`` for a newline.

    This covers control and format characters (including text direction), so that a kernel name
    cannot color, move or hide other output.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def cut_column(texts: list[str], width: int) -> list[str]:
    """Truncate strings in the middle, or around their differences if they would look the same.

    A stack frame keeps the end of its path and its line.
    """
    frames: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        if short := cut_frame(text, width):
            frames.setdefault(short, []).append(text)
    shortened = {same[0]: short for short, same in frames.items() if len(same) == 1}
    for tail_share in _TAIL_SHARES:
        candidates: dict[str, list[str]] = {}
        for text in dict.fromkeys(texts):
            if text not in shortened:
                candidates.setdefault(cut_middle(text, width, tail_share), []).append(text)
        taken = set(shortened.values())
        for short, same in candidates.items():
            if len(same) == 1 and short not in taken:
                shortened[same[0]] = short
    left = sorted({text for text in texts if text not in shortened})
    taken = set(shortened.values())
    for text, short in _around_differences(left, width).items():
        if short not in taken:
            shortened[text] = short
            taken.add(short)
    return [shortened.get(text) or cut_middle(text, width) for text in texts]


def cut_frame(text: str, width: int) -> str:
    """Truncate a stack frame: the start of its path first, then the end of its function.

    The result is empty if the text is not a stack frame, or the file and line do not fit.
    """
    frame = _FRAME.fullmatch(text)
    if not frame or not text.isascii():
        return ""
    if len(text) <= width:
        return text
    path, line, function = frame.groups()
    file = path.rpartition("/")[2]
    room = width - len(CUT + line + function)
    if room >= len(file):
        return CUT + path[-room:] + line + function
    whole = file + line + function
    return whole[: width - 1] + CUT if width > len(file + line) else ""


def _around_differences(texts: list[str], width: int) -> dict[str, str]:
    """Truncate each of the sorted strings to its start and its first difference from a neighbor."""
    head = max(1, width // 3)
    room = width - head - 1
    short = {}
    for at, text in enumerate(texts):
        neighbors = texts[max(0, at - 1) : at] + texts[at + 1 : at + 2]
        same = max((_same_start(text, other) for other in neighbors), default=0)
        start = max(head, min(same - room // 3, len(text) - room))
        ending = text[start:]
        behind = ending if len(ending) <= room else ending[: room - 1] + CUT
        short[text] = cut_middle(text[:head] + CUT + behind, width)
    return short


def _same_start(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def text_width(text: str) -> int:
    """Return the width of a string on a terminal [columns]; wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut_middle(text: str, width: int, tail_share: float = 0.5) -> str:
    """Truncate a string to a width, keeping its start and a tail of the given share."""
    if text_width(text) <= width:
        return text
    keep = max(0, width - 1)
    while True:
        tail = int(keep * tail_share)
        cut = text[: keep - tail] + CUT + text[len(text) - tail :]
        if keep == 0 or text_width(cut) <= width:
            return cut
        keep -= 1
