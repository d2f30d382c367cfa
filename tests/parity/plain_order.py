"""Two orders of the starts and ends on a thread: that of HTA's stack walk, and ours by time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from tests.parity.plain_trace import Row

Bound = tuple[int, bool]
"""An event, and whether this is its start or its end."""


def compare_bounds(x: tuple[int, Any, Any, int], y: tuple[int, Any, Any, int]) -> int:
    """Compare two starts or ends on a thread as HTA does.

    Each is a tuple (event, time, duration, side), where side is 1 for a start and -1 for an end.
    """
    if x[0] == y[0]:
        return y[3] - x[3]
    if x[1] != y[1]:
        return -1 if x[1] < y[1] else 1
    if x[3] != y[3] and 0 in {x[2], y[2]}:
        return _instant_order(x, y)
    if x[3] != y[3]:
        return x[3] - y[3]  # an end is before a start
    first = x[2] > y[2] if x[2] != y[2] else x[0] < y[0]
    return (-1 if first else 1) * x[3]


def _instant_order(x: tuple[int, Any, Any, int], y: tuple[int, Any, Any, int]) -> int:
    """Sort a zero-duration event inside an event that starts or ends at the same time."""
    if x[2] == y[2]:
        return -1 if x[0] < y[0] else 1
    instant, other = (x, y) if x[2] == 0 else (y, x)
    before = -1 if instant is y else 1
    return before if other[3] == 1 else -before


def walked(rows: list[Row]) -> Iterator[Bound]:
    """Yield the starts and ends on a thread in the order of HTA's walk over its stack."""
    bounds = [
        (row.event, at, max(row.dur, 0), side)
        for row in rows
        for at, side in ((row.ts, 1), (row.ts + max(row.dur, 0), -1))
    ]
    stack: list[int] = []
    for event, _, _, side in sorted(bounds, key=functools.cmp_to_key(compare_bounds)):
        if side == 1:
            stack.append(event)
            yield event, True
        elif stack:
            yield stack.pop(), False


def in_order(rows: list[Row]) -> list[Bound]:
    """Return starts and ends in time order: inner events end first, and outer events start first.

    A zero-duration event comes after ends and before starts at its time, unless an event on its
    thread starts at that time: then it is inside that event.
    """
    starting = {(row.pid, row.tid, row.ts) for row in rows if row.dur > 0}

    def key(row: Row, start: bool) -> tuple[Any, ...]:
        if row.dur <= 0:
            inside = (row.pid, row.tid, row.ts) in starting
            return row.ts, 3 if inside else 1, row.event, 0, not start
        if start:
            return row.ts, 2, -row.dur, row.event, 0
        return row.end, 0, -row.ts, -row.event, 0

    bounds = [(key(row, start), (row.event, start)) for row in rows for start in (True, False)]
    return [bound for _, bound in sorted(bounds)]
