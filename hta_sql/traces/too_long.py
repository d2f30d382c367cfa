"""Passes over an event that is too long to be held in memory, to where the next one starts.

It ends with the bracket that closes it; or, behind the bytes that an event may have, before
something that is an event by itself: quotes or brackets that do not match hide no event for long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hta_sql.traces.metadata import SPACE_AND_COMMA, follows_the_list, last_brackets

READ_BYTES = 1 << 20
OVERLAP_BYTES = 2 << 10
"""Kept of each block: what the next event is known by may lie across two of them."""

TAIL_BYTES = 64 << 10
"""Of a file that ends inside of the event: the end of its list is looked for in so much."""

_NEXT_EVENT = re.compile(
    rb'[,}\[\]]\s{0,64}(?=\{[^{}\[\]]{0,1000}?"ph"\s{0,8}:\s{0,8}"[A-Za-z]")', re.DOTALL
)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")] = 1
_STEPS[list(b"}]")] = -1
_QUOTE = ord('"')


class Passed(NamedTuple):
    """How long the event is, what stands between it and the rest, and the rest."""

    byte_count: int
    gap: int
    rest: bytes


def pass_over(buffer: bytes, read: Callable[[], bytes], max_bytes: int) -> Passed:
    """Find the end of the event that the buffer starts with, of more than max_bytes.

    Where it ends does not depend on how the bytes are read. Memory is that of the buffer.
    """
    brackets, done, fed = _Brackets(max_bytes), 0, 0
    closed = -1
    while True:
        if closed < 0:
            closed = brackets.end(buffer, fed)
        found = _NEXT_EVENT.search(buffer, max(0, max_bytes - done))
        following = found.end() if found else -1
        if 0 <= following < closed or (closed < 0 <= following):
            return _passed(buffer, following, done)
        if 0 <= closed <= max(following, len(buffer) - OVERLAP_BYTES):
            return _passed(buffer, closed, done)
        block = read()
        if not block:
            return _passed(buffer, closed if closed >= 0 else _end_of_list(buffer), done)
        over = max(0, len(buffer) - TAIL_BYTES)
        done, fed = done + over, len(buffer) - over
        closed = closed - over if closed >= 0 else -1
        buffer = buffer[over:] + block


def _passed(buffer: bytes, end: int, done: int) -> Passed:
    gap = end - len(buffer[:end].rstrip(SPACE_AND_COMMA))
    return Passed(done + end - gap, gap, buffer[end:])


def _end_of_list(tail: bytes) -> int:
    """Position of the last bracket that the rest of a whole file follows, or the end."""
    for bracket in last_brackets(tail):
        trailer = tail[bracket + 1 :]
        if trailer.rstrip().endswith(b"}") and follows_the_list(trailer):
            return bracket
    return len(tail)


class _Brackets:
    """Counts the brackets that are open outside of strings, block by block.

    Where they are all closed too early, the text is broken: then none of them ends the event.
    """

    def __init__(self, at_least: int) -> None:
        self._at_least = at_least
        self._depth = self._seen = 0
        self._is_string = self._is_escape = self._is_broken = False

    def end(self, buffer: bytes, start: int) -> int:
        """Position behind the bracket that closes the event, or -1."""
        for at in range(start, len(buffer), READ_BYTES):
            if self._is_broken:
                return -1
            block = buffer[at : at + READ_BYTES]
            end = self._end(block)
            self._seen += len(block)
            if end >= 0:
                return at + end
        return -1

    def _end(self, block: bytes) -> int:
        # A backslash at the end of a block hides the first byte of the next one.
        shift = int(self._is_escape)
        text = _ESCAPE.sub(b"xx", b"\\" * shift + block)
        self._is_escape = text.endswith(b"\\")
        codes = np.frombuffer(text, np.uint8)[shift:]
        quotes = np.cumsum(codes == _QUOTE) + self._is_string
        steps = np.where(quotes & 1, np.int8(0), _STEPS[codes])
        depth = np.cumsum(steps, dtype=np.int64) + self._depth
        closing = np.flatnonzero((depth <= 0) & (steps < 0))
        self._is_string, self._depth = bool(quotes[-1] & 1), int(depth[-1])
        if not closing.size:
            return -1
        # One that was not opened is that of the list.
        end = int(closing[0]) + int(depth[closing[0]] == 0)
        self._is_broken = self._seen + end <= self._at_least
        return -1 if self._is_broken else end
