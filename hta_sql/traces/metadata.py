"""The keys of a trace beside its events: read pair by pair, so that a broken one costs no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hta_sql.traces.repair import strictly

SPACE_AND_COMMA = b" \t\r\n,"
EVENTS_KEY = "traceEvents"
A_FIELD_OF_EVENTS = b'"ph"'

MAX_TRAILER_BRACKETS = 64
"""Closing brackets to try as the end of a broken list; trailers hold a few short lists."""

_KEY = re.compile(r'[\s,]*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)


class Keys(NamedTuple):
    """What `"key": value` pairs say, what was repaired in them, and what could not be read."""

    values: dict[str, Any]
    repairs: str | None
    problem: str | None


def read_keys(source: bytes) -> Keys:
    """Read `"key": value` pairs up to the first that is none."""
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
        return Keys(keys, repairs, f"not valid JSON: {rest[:50]!r} is no key")
    return Keys(keys, repairs, None)


def closes_the_list(rest: bytes) -> bool:
    """Say whether a bracket that these bytes follow ends the list of events for good.

    Nothing, a brace or more keys follow it; or something broken that holds no event either.
    """
    stripped = rest.strip(SPACE_AND_COMMA)
    if stripped in (b"", b"}") or A_FIELD_OF_EVENTS not in stripped:
        return True
    return follows_the_list(stripped)


def last_brackets(text: bytes, start: int = 0) -> Iterator[int]:
    """Yield where the last closing brackets stand, the very last first: one may end the list."""
    bracket = len(text)
    for _ in range(MAX_TRAILER_BRACKETS):
        bracket = text.rfind(b"]", start, bracket)
        if bracket < 0:
            return
        yield bracket


def follows_the_list(rest: bytes) -> bool:
    """Say whether the bytes are what a whole file has behind its list of events."""
    if not rest.strip(SPACE_AND_COMMA).startswith((b'"', b"}")):
        return False
    keys = read_keys(rest)
    return keys.problem is None and EVENTS_KEY not in keys.values
