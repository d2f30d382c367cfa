"""Values of files that are not traces: an odd value becomes NULL and is noted, and never costs its file.

Pickles share values: a text that is written once may be referenced a million times. Therefore the
text that a file may fill into tables is limited, in proportion to the size of the file.
"""

from __future__ import annotations

import json
from typing import Any

from hta_sql.text import counted
from hta_sql.traces.names import is_utf8

TEXT_PER_BYTE = 8
"""Rows and texts that each byte of a file may fill into tables [bytes]; real dumps stay below 3."""

TEXT_BYTES = 64 << 20
"""Rows and texts that any file may fill into tables [bytes]."""

MAX_TEXT = 64 << 10
"""Maximum length of a name [characters]."""

SHORT = 256
"""Length up to which a text counts with its row [characters]."""

LIMIT = 1 << 63
"""Integers of a table are below this, and not below its negative."""

_EXCERPT = 60
_DEEPEST = 16
"""Maximum nesting of a list; the encoder of JSON and ``repr`` recurse."""


class Values:
    """Converts the values of one file.

    Args:
        size: Size of the file [bytes].

    Attributes:
        odd_count: Number of values that were replaced by NULL.
    """

    def __init__(self, size: int = 0) -> None:
        self.odd_count = 0
        self._first = ""
        self._left = TEXT_BYTES + TEXT_PER_BYTE * size

    @property
    def problem(self) -> str | None:
        """Which values are NULL although the file states something; None if none are."""
        if not self.odd_count:
            return None
        return f"{counted(self.odd_count, 'value')} left out, the first: {self._first}"

    def whole(self, value: Any) -> int | None:
        """Return a 64-bit integer; None for other values, including booleans."""
        if type(value) is int and -LIMIT <= value < LIMIT:
            return value
        self._odd(value, "a 64-bit integer")
        return None

    def number(self, value: Any) -> float | None:
        """Return a number as a float; None for other values."""
        if type(value) in (int, float):
            try:
                return float(value)
            except OverflowError:
                pass
        self._odd(value, "a number")
        return None

    def text(self, value: Any, most: int = MAX_TEXT) -> str | None:
        """Return a non-empty string; None for other values, and beyond the limits."""
        if type(value) is str and len(value) <= SHORT and value.isascii():
            return value or None
        if not isinstance(value, str):
            self._odd(value, "a string")
            return None
        if self._left < 0:
            return None
        if len(value) > most or not (value.isascii() or is_utf8(value)):
            self._odd(value, f"a valid string of at most {most:,} characters")
            return None
        return (value or None) if self.takes(len(value)) else None

    def listed(self, value: Any, most: int) -> str | None:
        """Return a list of plain values as JSON; None for other values, and beyond the limits."""
        if self._left < 0:
            return None
        if not isinstance(value, (list, tuple)) or not _is_plain(value, most):
            self._odd(value, f"a list of at most {most:,} characters")
            return None
        try:
            listed = json.dumps(value, separators=(",", ":"))
        except ValueError:
            self._odd(value, "a list of numbers and strings")
            return None
        if len(listed) > most:
            self._odd(value, f"a list of at most {most:,} characters")
            return None
        return listed if self.takes(len(listed)) else None

    def takes(self, size: int) -> bool:
        """Count what a table takes [bytes]; return whether the file may fill so much."""
        if self._left < 0:
            return False
        self._left -= size
        if self._left < 0:
            self._note("more rows than a file of this size has, because they are shared")
        return self._left >= 0

    def _odd(self, value: Any, expected: str) -> None:
        if value is not None:
            self._note(f"{_excerpt(value)} instead of {expected}")

    def _note(self, what: str) -> None:
        self.odd_count += 1
        self._first = self._first or what


def _is_plain(value: Any, most: int) -> bool:
    """Return whether a list has at most so many plain values, and is not nested too deeply."""
    level, left = [value], most
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for items in level:
            left -= len(items)
            if left < 0:
                return False
            for item in items:
                if isinstance(item, (list, tuple)):
                    inner.append(item)
                elif isinstance(item, str):
                    left -= len(item)
                elif not (item is None or isinstance(item, (int, float))):
                    return False
        if not inner:
            return True
        level = inner
    return False


def _excerpt(value: Any) -> str:
    """Return the start of a value without recursion; numbers may have a million digits."""
    if isinstance(value, str):
        return ascii(value[:_EXCERPT])
    if type(value) is int and abs(value) >> 200:
        return f"a number of {value.bit_length():,} bits"
    return repr(value) if isinstance(value, (bool, int, float)) else f"a {type(value).__name__}"
