"""Finds the end of a JSON value in the engine's grammar, which accepts more than Python's decoder.

The engine also accepts a comma before a closing bracket, nan and inf in any case, and any depth.
Offsets refer to the original text, so that both readers see the same events.
"""

from __future__ import annotations

import re

ENGINE_ONLY = re.compile(r"-?(?:nan|inf)|,?[ \t\r\n]*[}\]]", re.IGNORECASE)
"""Matches text at which Python's decoder fails, but not the engine."""

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:"
    r'(?P<string>"[^"\\]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*)*")'
    r"|(?P<scalar>-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)|true|false|null)"
    r"|(?P<mark>[{}\[\],:]))"
)
_VALUE, _KEY, _COLON, _NEXT = range(4)
MAX_DEPTH = 1_000_000
"""Maximum number of open brackets. Each takes memory, and no valid trace is so deep.

The engine has no limit, so callers check a text before they pass it to the engine. A text with
fewer characters needs no check.
"""

NEAR_THE_END = 16
"""Distance from the end of the text within which a value may be truncated."""


def may_be_too_deep(text: bytes) -> bool:
    """Return whether a string has enough brackets to exceed the maximum depth."""
    return len(text) > MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH


class EngineGrammar:
    """Finds the ends of values in one text in linear time.

    If a scan fails, it would also fail from every bracket that was open. These brackets are cached,
    because otherwise a text of unclosed brackets would take quadratic time.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._hopeless: dict[int, bool] = {}

    def is_hopeless(self, start: int) -> bool:
        """Return whether the value that starts at a position is known to have no end."""
        return start in self._hopeless

    def end(self, start: int) -> tuple[int, bool]:
        """Return the position after the value that starts at ``start``, or -1.

        Returns:
            The position, and whether the text ended before an error.
        """
        if start in self._hopeless:
            return -1, self._hopeless[start]
        opened: list[int] = []
        end, position = self._scan(start, opened)
        if end > 0:
            return end, False
        is_deep = len(opened) > MAX_DEPTH
        ran_out = not is_deep and (
            position >= len(self._text) - NEAR_THE_END or self._is_cut(position)
        )
        self._hopeless.update(dict.fromkeys(opened, ran_out))
        return -1, ran_out

    def _is_cut(self, position: int) -> bool:
        """Return whether a string that starts at a position continues to the end of the text."""
        start = position + len(self._text[position:]) - len(self._text[position:].lstrip(" \t\r\n"))
        return self._text.startswith('"', start) and self._text.find('"', start + 1) < 0

    def _scan(self, position: int, opened: list[int]) -> tuple[int, int]:
        """Scan token by token; return the end or -1, and the position at which the scan stopped."""
        text, wanted = self._text, _VALUE
        while token := _TOKEN.match(text, position):
            kind, first = token.lastgroup, token.start(token.lastindex or 0)
            mark = text[first] if kind == "mark" else ""
            if kind == "string" and wanted == _KEY:
                wanted = _COLON
            elif kind in ("scalar", "string") and wanted == _VALUE:
                wanted = _NEXT
            elif mark == ":" and wanted == _COLON:
                wanted = _VALUE
            elif mark in ("{", "[") and wanted == _VALUE:
                opened.append(first)
                if len(opened) > MAX_DEPTH:
                    return -1, position
                wanted = _KEY if mark == "{" else _VALUE
            elif mark in ("}", "]") and opened and _closes(text, opened[-1], mark, wanted):
                opened.pop()
                wanted = _NEXT
            elif mark == "," and wanted == _NEXT and opened:
                wanted = _KEY if text[opened[-1]] == "{" else _VALUE
            else:
                return -1, position
            position = token.end()
            if wanted == _NEXT and not opened:
                return position, position
        return -1, position


def _closes(text: str, opening: int, mark: str, wanted: int) -> bool:
    """Return whether a bracket may close here: after a value, a comma or its opening bracket."""
    if text[opening] + mark not in ("{}", "[]"):
        return False
    if wanted in (_NEXT, _KEY):
        return True
    return wanted == _VALUE and mark == "]"
