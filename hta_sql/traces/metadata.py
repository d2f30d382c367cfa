"""Parses the top-level keys of a trace pair by pair, so that a malformed one affects no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hta_sql.traces.numbers import bounded_integer
from hta_sql.traces.repair import strictly

SPACE_AND_COMMA = b" \t\r\n,"
EVENTS_KEY = "traceEvents"
A_FIELD_OF_EVENTS = b'"ph"'

MAX_TRAILER_BRACKETS = 64
"""Number of closing brackets to try as the end of a malformed list; trailers have few lists."""

_KEY = re.compile(r'[\s,]*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL)
_decoder = json.JSONDecoder(strict=False, parse_int=bounded_integer)


class Keys(NamedTuple):
    """Parsed ``"key": value`` pairs, the repairs that were made, and the first problem."""

    values: dict[str, Any]
    repairs: str | None
    problem: str | None


def read_keys(source: bytes) -> Keys:
    """Parse `"key": value` pairs up to the first invalid one."""
    strict, repairs = strictly(source)
    text = strict.decode("utf-8")
    keys: dict[str, Any] = {}
    position = 0
    while pair := _KEY.match(text, position):
        try:
            value, position = _decoder.raw_decode(text, pair.end())
            json.dumps(value)
            keys[json.loads(pair.group(1), strict=False)] = value
        except (ValueError, RecursionError) as error:
            return Keys(keys, repairs, f"not valid JSON from {pair.group(1)[:50]} on: {error}")
    rest = text[position:].strip(" \t\r\n,")
    if rest not in ("", "}"):
        return Keys(keys, repairs, f"not valid JSON: {rest[:50]!r} is not a key")
    return Keys(keys, repairs, None)


def closes_the_list(rest: bytes) -> bool:
    """Return whether a bracket followed by these bytes ends the list of events.

    A list is followed by nothing, a brace, more keys, or malformed text without events.
    """
    stripped = rest.strip(SPACE_AND_COMMA)
    if stripped in (b"", b"}") or A_FIELD_OF_EVENTS not in stripped:
        return True
    return follows_the_list(stripped)


def last_brackets(text: bytes, start: int = 0) -> Iterator[int]:
    """Yield the positions of the last closing brackets, last first; one may end the list."""
    bracket = len(text)
    for _ in range(MAX_TRAILER_BRACKETS):
        bracket = text.rfind(b"]", start, bracket)
        if bracket < 0:
            return
        yield bracket


def follows_the_list(rest: bytes) -> bool:
    """Return whether the bytes are a valid trailer after a list of events."""
    if not rest.strip(SPACE_AND_COMMA).startswith((b'"', b"}")):
        return False
    keys = read_keys(rest)
    return keys.problem is None and EVENTS_KEY not in keys.values
