"""Times of events in a trace: read, moved and multiplied exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from tests.laws.jobs import Event, Job, Trace

NS_PER_US = 1000
_DIGITS = 60


def number(value: Any) -> Decimal | None:
    """Return a recorded time [µs]; None if the value is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        return None
    try:
        found = Decimal(value)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def base_us(trace: Trace) -> Decimal:
    """Return the time from which the events of a trace are counted [µs]; 0 if it is not stated."""
    return Decimal(trace.get("baseTimeNanoseconds") or 0) / NS_PER_US


def timed(trace: Trace) -> Iterator[tuple[Event, Decimal, Decimal | None]]:
    """Yield the events of a trace that have a start, with start and duration [µs]."""
    for event in trace["traceEvents"]:
        if isinstance(event, dict) and event.get("ph") != "M":
            start = number(event.get("ts"))
            if start is not None:
                yield event, start, number(event.get("dur"))


def first_us(job: Job) -> Decimal:
    """Return the start of the job's first event on the clock of all ranks [µs]."""
    return min(
        base_us(trace) + start for trace in job.ranks.values() for _, start, _ in timed(trace)
    )


def last_us(job: Job) -> Decimal:
    """Return the last end of an event on the clock of all ranks [µs]."""
    return max(
        base_us(trace) + start + (dur or 0)
        for trace in job.ranks.values()
        for _, start, dur in timed(trace)
    )


def move(job: Job, moved: Callable[[Decimal], Decimal]) -> None:
    """Move both ends of every event by a function of time on the clock of all ranks [µs]."""
    with localcontext(prec=_DIGITS):
        for trace in job.ranks.values():
            base = base_us(trace)
            for event, start, dur in list(timed(trace)):
                at = moved(base + start)
                if dur is not None:
                    # Impossible durations stay: a negative one has no end.
                    end = moved(base + start + dur) if dur > 0 else at + dur
                    put(event, "dur", end - at)
                put(event, "ts", at - base)


def put(event: Event, field: str, value: Decimal) -> None:
    """Store a time in the form that the field has: a number or a text."""
    plain = value.normalize()
    event[field] = f"{plain:f}" if isinstance(event[field], str) else _shortest(plain)


def _shortest(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() else Decimal(f"{value:f}")
