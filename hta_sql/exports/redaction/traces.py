"""Redacts a trace event by event; input and output are Kineto traces."""

from __future__ import annotations

import os
import re
from typing import Any

from hta_sql.exports.redaction.arguments import redacted_arguments, redacted_value
from hta_sql.exports.redaction.names import Redactor
from hta_sql.library.vendors import category_tables
from hta_sql.traces.events import Event, Json, written_event
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

NAME_KINDS = {
    "cpu_ops": "operator",
    "python_calls": "frame",
    "annotations": "annotation",
    "gpu_ops": "kernel",
    "runtime_calls": "runtime",
}
"""Table of an event ─▶ kind of its name."""

COUNTED_KERNELS = "cuda_profiler_range"
"""Category of CUPTI counter events, which are named after a kernel."""

SAMPLED_COUNTERS = "hardware_counters"
"""Category of PM sampling events, which are named after a counter."""

_TEXTS = {"ph": "phase", "cat": "category", "bp": "phase", "s": "phase"}
_EXACT = ("ts", "dur", "tdur", "tts")
_PLACES = {"pid": "thread", "tid": "thread", "id": "id"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def redact_trace(source: str, destination: str | os.PathLike[str], redact: Redactor) -> Rewritten:
    """Write a redacted copy of a trace; times and numbers keep every digit.

    Memory use grows with the number of distinct names, not with the number of events.

    Args:
        source: Trace: a path or URL, compressed or not, or a member of an archive.
        destination: Path or URL of the result; gzip if it ends in ``.gz``.
        redact: Replaces names.

    Raises:
        TraceError: The destination cannot be written.
        TraceNotFoundError: The source is missing.
        TraceFormatError: The source is not a trace.
        ParameterError: Source and destination are the same file.
    """

    def change(event: Event) -> bytes:
        return redacted_event(redact, event)

    def keys(values: dict[str, Any]) -> dict[str, Any]:
        try:
            return redacted_arguments(redact, values)
        except RecursionError:
            redact.drop("key", "metadata")
            return {}

    return rewrite_trace(source, destination, change=change, change_keys=keys)


def redacted_event(redact: Redactor, event: Event) -> bytes:
    """Return the redacted JSON of an event."""
    new: dict[str, Any] = {}
    for key, value in event.fields.items():
        if key in _EXACT:
            if isinstance(value, (int, float)) or (
                isinstance(value, str) and _NUMBER.fullmatch(value)
            ):
                new[key] = Json(event.member(key))
        elif key in _TEXTS and isinstance(value, str):
            new[key] = redact(_TEXTS[key], value)
        elif key in _PLACES:
            if isinstance(value, (int, float, str)):
                new[key] = redacted_value(redact, _PLACES[key], value)
        elif key == "name" and isinstance(value, str):
            new[key] = redact(name_kind(event.fields.get("cat")), value)
        elif key == "args" and isinstance(value, dict):
            try:
                new[key] = redacted_arguments(redact, value)
            except RecursionError:  # nested too deeply to be read anyway
                redact.drop("key", key)
        else:
            redact.drop("key", key)
    return written_event(new)


def name_kind(category: object) -> str:
    """Return the kind of name (operator, kernel, frame …) used in an event category."""
    text = str(category)
    if text == COUNTED_KERNELS:
        return "kernel"
    if text == SAMPLED_COUNTERS:
        return "counter"
    tables = category_tables()
    # A star stands for the vendor-specific start of a category; the known end follows.
    table = tables.get(text) or tables.get(f"*_{text.rpartition('_')[2]}", "")
    return NAME_KINDS.get(table, "event")
