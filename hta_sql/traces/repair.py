r"""Repairs typical errors of profilers inside one event.

These are Windows paths, quotes and control characters in names, bytes that are not UTF-8, and
``N/A`` in place of a number. Every repair is one pass over the text, changes nothing but the error,
and is kept only if the result is a valid event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

# The loop is unrolled, and an unclosed string matches to the end. Otherwise long strings cost
# memory per character, and many unclosed quotes take quadratic time.
STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_CONTROL = re.compile(rb"[\x00-\x1f]")
_CONTROL_OUTSIDE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_STRING = re.compile(STRING, re.DOTALL)
_BACKSLASH_PAIR = re.compile(rb'\\\\|\\u[0-9a-fA-F]{4}|\\["/bfnrt]|\\')
_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?"
    rb"|\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_TEXT_VALUE = re.compile(rb'"(?:name|Call stack)"\s*:\s*"')
_TEXT_VALUE_END = re.compile(
    rb'"\s*,\s*"(?:ph|cat|ts|pid|tid|dur|args|id|s|bp|Ev Idx|External id)"\s*:|"\s*\}\s*(?:\}\s*)?\Z'
)
_WORD_OR_STRING = re.compile(
    STRING + rb"|(?<=[:,\[\s])(N/A|n/a|None|undefined|True|False)(?=\s*[,}\]])", re.DOTALL
)
# Most malformed events have none of these; checking first is cheaper than calling back.
_MAYBE_ENGINE_ONLY = re.compile(rb",\s*[}\]]|nan|inf", re.IGNORECASE)
_MAYBE_WORD = re.compile(rb"N/A|n/a|None|undefined|True|False")
_MAYBE_LOOSE = re.compile(rb"[:,\[\s-]0\d")
_MEANING = {b"True": b"true", b"False": b"false"}
_LOOSE_NUMBER_OR_STRING = re.compile(STRING + rb"|(?<=[:,\[\s-])(?<![eE]-)(0+)(?=\d)", re.DOTALL)
# Accepted by the engine but not by Python: an extra comma, nan and inf in any case.
_ENGINE_ONLY = re.compile(
    STRING + rb"|(,)(?=\s*[}\]])|(?<=[:,\[\s-])(nan|inf(?:inity)?)(?=\s*[,}\]])",
    re.DOTALL | re.IGNORECASE,
)
# Numbers stay text: their value is not needed, and Python rejects very long ones.
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


def strictly(text: bytes) -> tuple[bytes, str | None]:
    """Convert JSON that only a lenient parser accepts to strict JSON; also return the repairs."""
    return _apply(text, _STRICT)


def is_valid_unicode(text: bytes) -> bool:
    """Return whether the text is UTF-8 without lone surrogates in escapes."""
    return _valid_utf8(text) == text and _no_lone_surrogate(text) == text


def repaired(source: bytes, *, quotes: bool = True) -> tuple[bytes, str | None] | None:
    """Repair the text of a malformed event.

    Args:
        source: Text of the event.
        quotes: Also try to escape quotes inside names.

    Returns:
        The repaired text and its defects (None if the engine accepts all of them), or None if the
        text cannot be repaired.
    """
    if not source.endswith(b"}"):
        return None  # no repair closes open brackets
    if _decoded(as_python_reads(source)) is not None:
        return strictly(source)
    text = source
    reasons: list[str] = []
    for reason, repair in (*_LENIENT, *(_QUOTES if quotes else ()), *_STRICT):
        changed = repair(text)
        if changed == text:
            continue
        text = changed
        reasons.append(reason)
        event = _decoded(as_python_reads(text))
        if event is not None and "ph" in event:
            text, more = strictly(text)
            return text, "; ".join([*reasons, *([more] if more else [])])
    return None


def as_python_reads(text: bytes) -> bytes:
    """Replace text that the engine accepts but Python's decoder rejects; for validation only."""

    def plain(found: re.Match[bytes]) -> bytes:
        if found.group(1):
            return b" "
        return b"0" if found.group(2) else found.group()

    return _ENGINE_ONLY.sub(plain, text) if _MAYBE_ENGINE_ONLY.search(text) else text


def _decoded(text: bytes) -> dict[str, object] | None:
    try:
        event = _decoder.decode(text.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _apply(text: bytes, repairs: Repairs) -> tuple[bytes, str | None]:
    reasons = []
    for reason, repair in repairs:
        changed = repair(text)
        if changed != text:
            text = changed
            reasons.append(reason)
    return text, "; ".join(reasons) or None


def _valid_utf8(text: bytes) -> bytes:
    return text.decode("utf-8", errors="replace").encode("utf-8")


def _no_control(text: bytes) -> bytes:
    def escape(found: re.Match[bytes]) -> bytes:
        return _CONTROL.sub(lambda c: b"\\u%04x" % c.group()[0], found.group())

    if not _CONTROL.search(text):
        return text
    # Outside of strings, white space is the only legal control character.
    return _CONTROL_OUTSIDE.sub(b" ", _STRING.sub(escape, text))


def _no_lone_surrogate(text: bytes) -> bytes:
    def replace(found: re.Match[bytes]) -> bytes:
        whole = found.group() == rb"\\" or found.group(1)
        return found.group() if whole else b"\\ufffd"

    return _SURROGATE.sub(replace, text)


def _no_bad_escape(text: bytes) -> bytes:
    def double(found: re.Match[bytes]) -> bytes:
        return b"\\\\" if found.group() == b"\\" else found.group()

    return _BACKSLASH_PAIR.sub(double, text)


def _no_bare_quote(text: bytes) -> bytes:
    """Escape quotes in a name, which ends before the next key of the event."""
    parts: list[bytes] = []
    position = 0
    while opening := _TEXT_VALUE.search(text, position):
        closing = _TEXT_VALUE_END.search(text, opening.end())
        if not closing:
            break
        inner = text[opening.end() : closing.start()]
        parts += [text[position : opening.end()], re.sub(rb'(?<!\\)"', b'\\"', inner)]
        position = closing.start()
    return b"".join([*parts, text[position:]])


def _no_bare_word(text: bytes) -> bytes:
    def value(found: re.Match[bytes]) -> bytes:
        return _MEANING.get(found.group(1), b"null") if found.group(1) else found.group()

    return _WORD_OR_STRING.sub(value, text) if _MAYBE_WORD.search(text) else text


def _no_leading_zero(text: bytes) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        return b"" if found.group(1) else found.group()

    return _LOOSE_NUMBER_OR_STRING.sub(plain, text) if _MAYBE_LOOSE.search(text) else text


Repairs = tuple[tuple[str, Callable[[bytes], bytes]], ...]
_STRICT: Repairs = (
    ("bytes that are not UTF-8", _valid_utf8),
    ("control characters in a string", _no_control),
    ("half of a surrogate pair", _no_lone_surrogate),
)
_LENIENT: Repairs = (
    ("backslashes that escape nothing", _no_bad_escape),
    ("words where a number belongs", _no_bare_word),
    ("numbers with leading zeros", _no_leading_zero),
)
_QUOTES: Repairs = (("quotes inside a name", _no_bare_quote),)
