"""A job on one device that is recorded only in part: its operations, and the resulting trace.

Operations run in the order of their launches on each stream. The recording contains the host calls
between its start and its end, and the operations whose launch it contains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

Event = dict[str, Any]

CALL_US = 4
"""Duration of a launch on the host [µs]."""

LATENCY_US = 2
"""Time from the end of a launch to the start of an operation on an idle stream [µs]."""


@dataclass(frozen=True)
class Operation:
    """A device operation and its launch; times in µs."""

    number: int
    stream: int
    launched: int
    start: int
    dur: int

    @property
    def end(self) -> int:
        """Return the end of the operation."""
        return self.start + self.dur


@dataclass
class Recording:
    """A trace, and the intervals in which its device ran unrecorded operations [ns]."""

    events: list[Event] = field(default_factory=list)
    unrecorded: list[tuple[int, int]] = field(default_factory=list)


def run_operations(launches: list[tuple[int, int, int]]) -> list[Operation]:
    """Run operations in launch order; each is given as (launch, stream, duration) [µs]."""
    free: dict[int, int] = {}
    done = []
    for number, (launched, stream, dur) in enumerate(launches):
        start = max(launched + CALL_US + LATENCY_US, free.get(stream, 0))
        free[stream] = start + dur
        done.append(Operation(number, stream, launched, start, dur))
    return done


def training_launches(
    random: Random, count: int, *, work_us: int, pause_us: int
) -> list[tuple[int, int, int]]:
    """Return consecutive launches, with random pauses of the host between them."""
    at, launches = 0, []
    for _ in range(count):
        at += CALL_US + random.randint(0, pause_us)
        stream = 7 if random.random() < 0.8 else 20
        launches.append((at, stream, random.randint(1, work_us)))
    return launches


def record(
    operations: list[Operation],
    start: int,
    end: int,
    *,
    dropped: Collection[int] = (),
    skew_us: int = 0,
) -> Recording:
    """Return the recording of a time window, with times relative to its start.

    Args:
        operations: All operations.
        start: Start of the recording [µs].
        end: End of the recording [µs].
        dropped: Numbers of operations whose records are lost; their launches remain.
        skew_us: How far the device clock is ahead of the host clock [µs].
    """
    kept = [o for o in operations if start <= o.launched and o.launched + CALL_US <= end]
    held = [o for o in kept if o.number not in dropped and o.end <= end]
    events: list[Event] = [_host("cpu_op", "train", 0, end - start, {})]
    events += [
        _host("cuda_runtime", "cudaLaunchKernel", o.launched - start, CALL_US, _args(o))
        for o in kept
    ]
    events += [_device(o, skew_us - start) for o in held]
    recorded = _merged((o.start, o.end) for o in held)
    others = _merged((o.start, o.end) for o in operations if o not in held)
    missing = _without(others, recorded, start, end)
    return Recording(events, [(1000 * (a - start), 1000 * (b - start)) for a, b in missing])


def _args(operation: Operation) -> dict[str, int]:
    return {"correlation": 100 + operation.number}


def _host(category: str, name: str, ts: int, dur: int, args: dict[str, int]) -> Event:
    base = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1}
    return base | {"ts": ts, "dur": dur, "args": args}


def _device(operation: Operation, shift: int) -> Event:
    args = _args(operation) | {"device": 0, "stream": operation.stream}
    name = f"kernel_{operation.number % 3}"
    base = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": operation.stream}
    return base | {"ts": operation.start + shift, "dur": operation.dur, "args": args}


def _merged(intervals: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(
    intervals: list[tuple[int, int]], taken: list[tuple[int, int]], start: int, end: int
) -> list[tuple[int, int]]:
    """Clip intervals to a window, and subtract the taken intervals from them."""
    left = []
    for first, last in intervals:
        at = max(first, start)
        for a, b in taken:
            if a >= last or b <= at:
                continue
            if a > at:
                left.append((at, a))
            at = b
        if at < min(last, end):
            left.append((at, min(last, end)))
    return left
