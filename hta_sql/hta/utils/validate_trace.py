"""Whether the arguments of a trace's events are known and of the right type, with HTA's call."""

from __future__ import annotations

from typing import Any

from hta_sql.traces.argument_types import check_argument_types

__all__ = ["validate_trace_format"]


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
    found = check_argument_types(trace_file_path, level)
    if found.unread and _has_no_events(message := str(found.unread)):
        return False, {"trace_data_error": message}
    errors: dict[str, Any] = {
        "trace_data_error": found.no_event,
        "args_data_type": found.no_arguments,
        # What was wrong up to there is wrong all the same.
        "trace_read_error": found.unread,
        "skipped_arguments": {} if ignore_missing_arguments else dict(found.unknown),
        "type_violations": found.violations,
    }
    errors = {key: value for key, value in errors.items() if value}
    return not errors, errors


def _has_no_events(message: str) -> bool:
    return "no traceEvents" in message or "without trace events" in message
