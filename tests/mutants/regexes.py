"""Mutate regular expressions by removing one part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATOM = re.compile(
    r"(?P<anchor>[\^$])|(?P<open>\((?:\?:|\?i\))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<set>\[\^?[^\]]*\])|(?P<escape>\\.)|(?P<any>\.)|(?P<run>[^\\.*+?()|\[\]{}^$]+)"
)
_QUANTIFIER = re.compile(r"[*+?]|\{[\d,]*\}")


def with_less(pattern: str) -> Iterator[str]:
    """Yield variants of a pattern, each without one of its parts.

    A part is an alternative, a group, an anchor, or a run of characters. An optional part is also
    made required.
    """
    seen = {pattern}
    for start, end in _parts(pattern):
        candidates = [pattern[:start] + pattern[end:]]
        if pattern[end - 1] in "?*" and end - start > 1:
            candidates.append(pattern[: end - 1] + pattern[end:])
        for candidate in candidates:
            if candidate not in seen and _is_valid(candidate):
                seen.add(candidate)
                yield candidate


def _is_valid(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _parts(pattern: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of atoms with their quantifiers, of whole groups, and of alternatives."""
    groups: list[int] = []
    bars: list[list[int]] = [[-1]]
    at = 0
    while at < len(pattern):
        found = _ATOM.match(pattern, at)
        if found is None:
            at += 1
            continue
        at = found.end()
        if found["open"] is not None and not found[0].endswith("i)"):
            groups.append(found.start())
            bars.append([found.end() - 1])
        elif found["bar"]:
            bars[-1].append(found.start())
        elif found["close"] and groups:
            yield from _alternatives(bars.pop(), found.start())
            at = _behind(pattern, at)
            yield groups.pop(), at
        elif found["run"] and len(found[0]) > 1 and _behind(pattern, at) > at:
            # A quantifier applies only to the last character.
            yield found.start(), at - 1
            yield at - 1, _behind(pattern, at)
            at = _behind(pattern, at)
        else:
            at = _behind(pattern, at)
            yield found.start(), at
    yield from _alternatives(bars[0], len(pattern))


def _behind(pattern: str, at: int) -> int:
    found = _QUANTIFIER.match(pattern, at)
    return found.end() if found else at


def _alternatives(bars: list[int], end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of alternatives, each with one adjacent bar."""
    if len(bars) > 1:
        for number, bar in enumerate(bars):
            if number + 1 < len(bars):
                yield bar + 1, bars[number + 1] + 1
            else:
                yield bar, end
