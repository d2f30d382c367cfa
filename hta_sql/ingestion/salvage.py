r"""Rescues what can be rescued from text that the parser refuses, event by event.

A streaming JSON parser (ijson) was the first choice and is the wrong one: it
cannot go on behind a bad byte. This walks the text from event to event with
the standard library's decoder; where an event does not parse, it tries the
repairs for what profilers really get wrong (Windows paths, quotes and control
characters in names, bytes that are not UTF-8), and else skips to where the
next event starts. One bad event costs one event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EXCERPT_BYTES = 200

EVENT_START = re.compile(
    rb'(?<=[,}\]])\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|bp|s)"\s*:|\{\s*"ph"\s*:'
)
_BETWEEN = re.compile(rb"[\s,]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BACKSLASH_PAIR = re.compile(rb'\\\\|\\u[0-9a-fA-F]{4}|\\["/bfnrt]|\\')
_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_NAME_VALUE = re.compile(
    rb'("(?:name|Call stack)"\s*:\s*")(.*?)("\s*,\s*"(?:ph|cat|ts|pid|tid|dur|args|id|s|bp)"\s*:|"\s*\}\s*$)',
    re.DOTALL,
)
_BARE_WORD = re.compile(
    rb"(:\s*)(?:N/A|n/a|None|undefined|nan|-?[Ii]nf|-?NaN|-?Infinity)(\s*[,}\]])"
)
_LOOSE_NUMBER = re.compile(rb"(:\s*-?)0+(?=\d)")
_decoder = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Rescued:
    """One span of the text: an event as it will be parsed, or what was wrong with it.

    Attributes:
        start: Position of the span in the text.
        source: The bytes as they stand there.
        text: Valid JSON of the event; None: it is lost.
        reason: What was wrong; None: nothing.
    """

    start: int
    source: bytes
    text: bytes | None
    reason: str | None

    @property
    def excerpt(self) -> str:
        """The start of the span, printable."""
        return self.source[:EXCERPT_BYTES].decode("utf-8", errors="replace")


def rescue(text: bytes) -> Iterator[Rescued]:
    """Walk a run of events and yield each, whole, repaired or lost."""
    readable = text.decode("latin-1")  # one character a byte: positions stay valid
    position, size = 0, len(text)
    while True:
        position = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]
        if position >= size:
            return
        end, problem = _event_end(readable, position)
        if problem is None:
            yield _checked(position, text[position:end])
        else:
            end = _next_event(text, position)
            yield _repaired(position, text[position:end].rstrip(b", \t\r\n"), problem)
        position = end


def _event_end(readable: str, position: int) -> tuple[int, str | None]:
    if readable[position] != "{":
        return position, "not an event"
    try:
        _, end = _decoder.raw_decode(readable, position)
    except ValueError as error:
        return position, getattr(error, "msg", str(error))
    except RecursionError:
        return position, "nested too deeply"
    return end, None


def _next_event(text: bytes, position: int) -> int:
    following = EVENT_START.search(text, position + 1)
    if not following:
        return len(text)
    return following.end() - len(following.group().lstrip())


def _checked(start: int, source: bytes) -> Rescued:
    """An event that parses leniently: make it parse strictly too."""
    text = source
    reasons = []
    for reason, repair in _STRICT:
        repaired = repair(text)
        if repaired != text:
            text = repaired
            reasons.append(reason)
    return Rescued(start, source, text, "; ".join(reasons) or None)


def _repaired(start: int, source: bytes, problem: str) -> Rescued:
    text = source
    reasons: list[str] = []
    for reason, repair in (*_LENIENT, *_STRICT):
        repaired = repair(text)
        if repaired == text:
            continue
        text = repaired
        reasons.append(reason)
        if _is_event(text):
            checked = _checked(start, text)
            return Rescued(start, source, checked.text, "repaired: " + "; ".join(reasons))
    return Rescued(start, source, None, f"broken JSON: {problem}")


def _is_event(text: bytes) -> bool:
    try:
        event = _decoder.decode(text.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and "ph" in event


def _valid_utf8(text: bytes) -> bytes:
    return text.decode("utf-8", errors="replace").encode("utf-8")


def _no_control(text: bytes) -> bytes:
    def escape(found: re.Match[bytes]) -> bytes:
        return _CONTROL.sub(lambda c: b"\\u%04x" % c.group()[0], found.group())

    if not _CONTROL.search(text):
        return text
    escaped = _STRING.sub(escape, text)
    # Outside of strings only white space is legal.
    return re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b" ", escaped)


def _no_lone_surrogate(text: bytes) -> bytes:
    def replace(found: re.Match[bytes]) -> bytes:
        return found.group() if found.group(1) else b"\\ufffd"

    return _SURROGATE.sub(replace, text)


def _no_bad_escape(text: bytes) -> bytes:
    def double(found: re.Match[bytes]) -> bytes:
        return b"\\\\" if found.group() == b"\\" else found.group()

    return _BACKSLASH_PAIR.sub(double, text)


def _no_bare_quote(text: bytes) -> bytes:
    def escape(found: re.Match[bytes]) -> bytes:
        inner = re.sub(rb'(?<!\\)"', b'\\"', found.group(2))
        return found.group(1) + inner + found.group(3)

    return _NAME_VALUE.sub(escape, text)


def _no_bare_word(text: bytes) -> bytes:
    return _BARE_WORD.sub(rb"\1null\2", text)


def _no_leading_zero(text: bytes) -> bytes:
    return _LOOSE_NUMBER.sub(rb"\1", text)


_Repairs = tuple[tuple[str, Callable[[bytes], bytes]], ...]
_STRICT: _Repairs = (
    ("bytes that are not UTF-8", _valid_utf8),
    ("control characters in a string", _no_control),
    ("half of a surrogate pair", _no_lone_surrogate),
)
_LENIENT: _Repairs = (
    ("backslashes that escape nothing", _no_bad_escape),
    ("words where a number belongs", _no_bare_word),
    ("numbers with leading zeros", _no_leading_zero),
    ("quotes inside a name", _no_bare_quote),
)
