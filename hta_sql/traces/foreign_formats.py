"""Recognizes files that are not Kineto traces, and suggests what to do.

Many programs write JSON in Chrome's trace format, or JSON about a PyTorch job. Each guess is based
on keys that only one program writes. A wrong guess only affects the error message.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from hta_sql.library.vendors import alternatives


@cache
def kineto_sign() -> re.Pattern[bytes]:
    """Return a pattern for text that only Kineto and profilers derived from it write."""
    return re.compile(
        rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
        rb'|"cat"\s*:\s*"(?:' + alternatives("category").encode() + rb')"'
        rb'|"Ascend Hardware"|ProfilerStep#|"\[memory\]"'
    )


ACTIVITY = re.compile(rb'"ph"\s*:\s*"[^M"]"')
"""Matches an event other than metadata."""


class Foreign(NamedTuple):
    """Apparent format of a file, and a suggestion."""

    looks_like: str
    advice: str


_RECORD = "Record with torch.profiler and pass what export_chrome_trace or its handler writes."

_OF_PYTORCH = (
    "Pass the JSON that torch.profiler.ExecutionTraceObserver wrote, next to the Kineto trace of the "
    "same rank."
)

_JSON = (
    (
        rb'^\s*\{(?=[\s\S]*"nodes"\s*:)(?=[\s\S]*"(?:schema|pid)"\s*:)(?=[\s\S]*"(?:rf_id|ctrl_deps|data_deps|attrs?|op_schema)")',
        Foreign(
            "a Chakra execution trace (chakra_trace_link, chakra_converter)",
            _OF_PYTORCH,
        ),
    ),
    (
        rb"^\s*\[\s*\[",
        Foreign(
            "a memory timeline (export_memory_timeline)",
            "Profile with profile_memory=True and pass the trace itself.",
        ),
    ),
    (rb'"viztracer_metadata"|"viztracer"', Foreign("a VizTracer trace", _RECORD)),
    (
        rb'"(?:rocprofiler-sdk-tool|BeginNs|rocprofiler_version)"',
        Foreign("a rocprof trace", _RECORD),
    ),
    (
        rb'"(?:nvprof|CudaEvent|TraceProcessEvent|StringTable)"|"\[CUDA mem(?:cpy|set)',
        Foreign("an nvprof or Nsight Systems export", _RECORD),
    ),
    (
        rb'"name"\s*:\s*"/(?:device|host):|"tf_op"\s*:|"tf_data_|"TensorFlow Name Scope"|"long_name"\s*:',
        Foreign("a TensorFlow or JAX trace", _RECORD),
    ),
    (
        rb"speedscope\.app",
        Foreign("a speedscope profile (py-spy, rbspy)", _RECORD),
    ),
    (rb'"resourceSpans"\s*:', Foreign("an OpenTelemetry export", _RECORD)),
    (
        rb'"perfetto|"chrome-json-format"|"clock-domain"|"systemTraceEvents"|"disabled-by-default',
        Foreign("a Chrome or Perfetto trace", _RECORD),
    ),
)
_GUESSES = tuple((re.compile(pattern), foreign) for pattern, foreign in _JSON)

_BINARY = (
    (b"SQLi", Foreign("an SQLite database (Nsight Systems, Ascend)", _RECORD)),
    (b"PAR1", Foreign("a Parquet file", "Pass traces; a store is opened with hta_sql.open.")),
    # A message of 7 bytes whose first field is the version of the schema, such as 0.0.4.
    (
        b"\x07\n\x05",
        Foreign("a Chakra execution trace in protobuf (chakra_converter)", _OF_PYTORCH),
    ),
    (
        b"\x80",
        Foreign(
            "a Python pickle that is neither a memory snapshot nor a Flight Recorder dump", _RECORD
        ),
    ),
)

PERFETTO = Foreign(
    "a Perfetto trace in protobuf (.pftrace)",
    'Pass the same profile as JSON: prof.export_chrome_trace("trace.json.gz").',
)
_TEXT_FROM, _TEXT_BELOW = ord("\t"), 0x80

CHROME = Foreign(
    "a Chrome trace from another program: no event has a category of PyTorch's profiler", _RECORD
)


def guess_binary(start: bytes) -> Foreign | None:
    """Guess the format of a binary file from its first bytes."""
    # The tag of a packet and its size, then often a time of 0: "\n#@\0".
    if start.startswith(b"\n") and (
        start[2:3] == b"@" or not all(_TEXT_FROM <= byte < _TEXT_BELOW for byte in start)
    ):
        return PERFETTO
    return next((foreign for magic, foreign in _BINARY if start.startswith(magic)), None)


def guess_json(head: bytes) -> Foreign | None:
    """Guess the format of a JSON file from its start."""
    return next((foreign for pattern, foreign in _GUESSES if pattern.search(head)), None)
