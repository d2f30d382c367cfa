"""Paths of traces as text; reversible even for file names that are not UTF-8."""

from __future__ import annotations

from urllib.parse import quote_from_bytes, unquote_to_bytes

_SCHEME = "file://"
_PLAIN = "/:*!()[]{}@,;=+ "


def path_text(path: str) -> str:
    """Return a path as text that can be stored and printed.

    Python represents bytes that are not UTF-8 as lone surrogates (PEP 383), which neither the
    engine nor a JSON file can store. Such a path becomes a URL with those bytes escaped:
    ``file:///job/rank%FF0.json``. All other paths are unchanged.
    """
    if is_utf8(path):
        return path
    return _SCHEME + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe=_PLAIN)


def path_of(text: str) -> str:
    """Return the path that :func:`path_text` converted to text."""
    if text.startswith(_SCHEME):
        path = unquote_to_bytes(text.removeprefix(_SCHEME)).decode("utf-8", "surrogateescape")
        if path_text(path) == text:
            return path
    return text


def is_utf8(text: str) -> bool:
    """Return whether a file name or another string can be encoded: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
