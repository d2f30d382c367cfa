"""Checks the arguments of a trace's events: known names, and the types that PyTorch writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hta_sql.errors import ParameterError, TraceError
from hta_sql.library.arguments import known_arguments
from hta_sql.traces.whole_files import trace_events

LEVELS = ("minimal", "standard", "complete")

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "any": (object,),
}


@dataclass
class ArgumentTypes:
    """Problems with the arguments of a trace's events; the first of each kind is recorded.

    Attributes:
        violations: Argument ─▶ its first value of the wrong type, in trace order.
        unknown: Argument outside the level ─▶ number of events that have it.
        no_event: First element of the event list that is not an event.
        no_arguments: First event whose arguments are not an object.
        unread: Why the trace could not be read to the end.
    """

    violations: dict[str, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    no_event: str | None = None
    no_arguments: str | None = None
    unread: TraceError | None = None


def check_argument_types(path: str, level: str = "standard") -> ArgumentTypes:
    """Check the arguments of every event of a trace, in constant memory.

    Null values are ignored: PyTorch writes null as the parent of an outermost Python frame.

    Args:
        path: The trace, compressed or not.
        level: Arguments to check: ``minimal`` (stream, correlation), ``standard`` (those that HTA
            reads), or ``complete`` (all that PyTorch writes).

    Raises:
        ParameterError: The level does not exist.
    """
    found, types = ArgumentTypes(), _types_of(level)
    try:
        for number, event in enumerate(trace_events(path)):
            if not isinstance(event, dict):
                found.no_event = found.no_event or f"not an event: {event!r:.80} (event {number})"
                continue
            args = event.get("args", {})
            if isinstance(args, dict):
                _check(found, args, types, number)
            elif not found.no_arguments:
                found.no_arguments = f"args is not a dict: {args!s:.80} (event {number})"
    except TraceError as error:
        found.unread = error
    return found


def _check(
    found: ArgumentTypes, args: dict[str, object], types: dict[str, str], number: int
) -> None:
    found.unknown.update(args.keys() - types.keys())
    # In trace order, so that the first violation is deterministic.
    for name, value in args.items():
        expected = types.get(name)
        if expected and value is not None and not isinstance(value, _TYPES[expected]):
            found.violations.setdefault(
                name,
                f"key={name}: value={value!r:.80} type={type(value).__name__}; "
                f"expect_type={expected} (event {number})",
            )


def _types_of(level: str) -> dict[str, str]:
    """Return {argument: type} of a level and the levels below it.

    Raises:
        ParameterError: The level does not exist.
    """
    if level not in LEVELS:
        raise ParameterError(f"No level {level!r}; available: {', '.join(LEVELS)}.")
    wanted = LEVELS[: LEVELS.index(level) + 1]
    return {a.name: a.checked_type for a in known_arguments() if a.level in wanted}
