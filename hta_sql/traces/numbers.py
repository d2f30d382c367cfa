"""Parses the integers of JSON, which may have more digits than Python parses."""

from __future__ import annotations

MAX_DIGITS = 400
"""Maximum digits of an integer; a longer one is unknown."""


def bounded_integer(text: str) -> int | None:
    """Return an integer, or None if it has more than MAX_DIGITS digits.

    Python refuses integers of thousands of digits, and one of them must not cost its file.
    """
    return int(text) if len(text) <= MAX_DIGITS else None
