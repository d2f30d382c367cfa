"""Whether the arguments of a trace's events are known and of the right type, with HTA's call."""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache
from typing import Any

from hta_sql.errors import ParameterError, TraceError
from hta_sql.library.files import sql_root
from hta_sql.traces.whole_files import trace_events

__all__ = ["validate_trace_format"]

LEVELS = ("minimal", "standard", "complete")

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "any": (object,),
}


def validate_trace_format(
    trace_file_path: str, level: str = "standard", ignore_missing_arguments: bool = True
) -> tuple[bool, dict[str, Any]]:
    """Check the arguments of every event of a trace.

    The trace is streamed, so that its size does not matter. null is no value: PyTorch writes it for
    the parent of an outermost Python frame. For what is missing from a trace as a
    recording, ask ``hta-sql doctor``.

    Args:
        trace_file_path: The trace, compressed or not.
        level: Arguments to check: ``minimal`` (stream, correlation), ``standard`` (those that HTA
            reads), or ``complete`` (all that PyTorch writes).
        ignore_missing_arguments: Whether arguments beyond the level are no error.

    Returns:
        Whether there is no error, and the errors: ``trace_read_error`` (the exception),
        ``trace_data_error`` and ``args_data_type`` (text), ``skipped_arguments`` ({argument not of
        the level: events that have it}), ``type_violations`` ({argument: the first value of a wrong
        type}).

    Raises:
        ParameterError: No such level.
    """
    types = _argument_types(_checked(level))
    errors: dict[str, Any] = {}
    skipped: Counter[str] = Counter()
    violations: dict[str, str] = {}
    try:
        for number, event in enumerate(trace_events(trace_file_path)):
            if not isinstance(event, dict):
                errors.setdefault(
                    "trace_data_error", f"not an event: {event!r:.80} (event {number})"
                )
                continue
            args = event.get("args", {})
            if not isinstance(args, dict):
                errors.setdefault(
                    "args_data_type", f"args is not a dict: {args!s:.80} (event {number})"
                )
                continue
            skipped.update(args.keys() - types.keys())
            # In the order of the trace: whoever shows the first violation always shows the same.
            for name, value in args.items():
                expected = types.get(name)
                if expected and value is not None and not isinstance(value, _TYPES[expected]):
                    violations.setdefault(name, _violation(number, name, value, expected))
    except TraceError as error:
        message = str(error)
        if "no traceEvents" in message or "without trace events" in message:
            return False, {"trace_data_error": message}
        # What was wrong up to there is wrong all the same.
        errors["trace_read_error"] = error
    if skipped and not ignore_missing_arguments:
        errors["skipped_arguments"] = dict(skipped)
    if violations:
        errors["type_violations"] = violations
    return not errors, errors


def _checked(level: str) -> str:
    if level not in LEVELS:
        raise ParameterError(f"No level {level!r}; there are: {', '.join(LEVELS)}.")
    return level


def _violation(number: int, name: str, value: object, expected: str) -> str:
    return f"key={name}: value={value!r:.80} type={type(value).__name__}; expect_type={expected} (event {number})"


@cache
def _argument_types(level: str) -> dict[str, str]:
    """Return {argument: type} of a level and those below it."""
    wanted = LEVELS[: LEVELS.index(level) + 1]
    with (sql_root() / "readers" / "argument_types.csv").open(encoding="utf-8", newline="") as file:
        return {r["argument"]: r["type"] for r in csv.DictReader(file) if r["level"] in wanted}
