"""Skips an event that is too long for memory, up to the start of the next event.

The event ends with its closing bracket. Beyond the maximum size, it also ends before text that is
an event by itself, so that unmatched quotes or brackets do not hide the following events.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hta_sql.traces.metadata import SPACE_AND_COMMA, follows_the_list, last_brackets

READ_BYTES = 1 << 20
OVERLAP_BYTES = 2 << 10
"""Bytes of the previous block to keep, because the next event's start may span two blocks."""

TAIL_BYTES = 64 << 10
"""Bytes to search for the end of the list if the file ends inside the event."""

_NEXT_EVENT = re.compile(
    rb'[,}\[\]]\s{0,64}(?=\{[^{}\[\]]{0,1000}?"ph"\s{0,8}:\s{0,8}"[A-Za-z]")', re.DOTALL
)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")] = 1
_STEPS[list(b"}]")] = -1
_QUOTE = ord('"')


class Passed(NamedTuple):
    """Size of the skipped event, size of the gap after it, and the rest of the buffer."""

    byte_count: int
    gap: int
    rest: bytes


def pass_over(buffer: bytes, read: Callable[[], bytes], max_bytes: int) -> Passed:
    """Find the end of an event longer than max_bytes at the start of the buffer.

    The end does not depend on how the bytes are read. Memory is limited to the buffer.
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
    """Return the position of the last bracket followed by a valid trailer, or the end."""
    for bracket in last_brackets(tail):
        trailer = tail[bracket + 1 :]
        if trailer.rstrip().endswith(b"}") and follows_the_list(trailer):
            return bracket
    return len(tail)


class _Brackets:
    """Counts the open brackets outside of strings, block by block.

    If all brackets are closed before the minimum size, the text is malformed, and no bracket ends
    the event.
    """

    def __init__(self, at_least: int) -> None:
        self._at_least = at_least
        self._depth = self._seen = 0
        self._is_string = self._is_escape = self._is_broken = False

    def end(self, buffer: bytes, start: int) -> int:
        """Return the position after the bracket that closes the event, or -1."""
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
        # A backslash at the end of a block escapes the first byte of the next one.
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
        # A bracket that was not opened belongs to the list.
        end = int(closing[0]) + int(depth[closing[0]] == 0)
        self._is_broken = self._seen + end <= self._at_least
        return -1 if self._is_broken else end
