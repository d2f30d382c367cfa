"""Checks that every number is an identifier or has a unit that matches its column name."""

from __future__ import annotations

from collections.abc import Iterator

from hta_sql.library.declared import Column

SUFFIX_UNITS = {
    "_ns": "ns",
    "_us": "us",
    "_pct": "%",
    "_bytes": "bytes",
    "_gbps": "GB/s",
    "_tflops": "TFLOP/s",
    "_tbps": "TB/s",
    "_count": "count",
    "_tokens": "tokens",
    "_per_s": "1/s",
}
"""Name suffix ─▶ unit; an analysis's column with such a unit must have the suffix."""

BASE_UNITS = {"ts": "ns", "dur": "ns", "bytes": "bytes", "byte_count": "bytes"}
"""Columns of the traces themselves, as a name or suffix: ts, launch_ts, dur."""

UNITS = {*SUFFIX_UNITS.values(), "1"}
"""Allowed units; 1 is the unit of dimensionless numbers, such as ratios."""

IDENTIFIERS = frozenset(
    {
        # Coordinates of where something ran; their sums and means are meaningless.
        *(
            "run",
            "rank",
            "step",
            "device",
            "span",
            "stream",
            "context",
            "pid",
            "tid",
            "launch_pid",
            "launch_tid",
        ),
        *(
            "stated_rank",
            "role_rank",
            "mismatch_rank",
            "first_rank",
            "src_rank",
            "dst_rank",
            "device_type",
            "version",
        ),
        # Reference ranks of a comparison.
        *("ref_rank", "reference_rank", "clock_reference_rank"),
        # The rank with an extreme value.
        *("min_rank", "max_rank", "worst_rank", "last_rank", "late_rank", "common_rank"),
        # The step with an extreme value, or the first one.
        "longest_step",
        "first_step",
        # Blocks of the window that all ranks have in common.
        "block",
        # Parts of a pipeline.
        *("pipeline", "stage", "src_stage", "dst_stage", "slowest_stage", "layer"),
        # Identifiers assigned by the profiler.
        *("correlation", "cbid", "seq", "sequence_number", "profiler_event_index", "addr"),
        "python_thread",
        # Target of a device-side wait: a stream, a call, an event.
        *("wait_on_stream", "wait_on_event", "wait_on_record_correlation"),
        # A version in two parts.
        *("compute_major", "compute_minor"),
    }
)
"""Columns without a unit because they contain identifiers, as do all columns ending in _id."""

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
_NUMBERS = {*_INTEGERS, *(f"U{kind}" for kind in _INTEGERS), "FLOAT", "DOUBLE"}


def unit_problems(column: Column, *, in_analysis: bool) -> Iterator[str]:
    """Yield the problems with the unit of a column."""
    name, unit = column.name, column.unit
    if column.type not in _NUMBERS and not column.type.startswith("DECIMAL"):
        if unit:
            yield f"column {name} has type {column.type}, which has no unit; remove [{unit}]"
        return
    if unit is None:
        if not is_identifier(column):
            yield (
                f"column {name} has no unit: write its unit in brackets after the type ([1] for a "
                "number without a unit); if the number identifies something, end the column name in _id"
            )
        return
    if unit not in UNITS:
        yield (f"column {name} has the unit [{unit}]; known units: {', '.join(sorted(UNITS))}")
    elif (wanted := _unit_of_name(name)) not in {None, unit}:
        yield f"column {name} has the unit [{unit}], but its name implies [{wanted}]; change one of them"
    elif in_analysis and wanted is None and unit != "1":
        suffix = next(ending for ending, known in SUFFIX_UNITS.items() if known == unit)
        yield f"column {name} has the unit [{unit}]: rename it to {name}{suffix}, which states the unit"


def is_identifier(column: Column) -> bool:
    """Return whether the numbers in a column are identifiers."""
    return column.type != "DOUBLE" and (column.name in IDENTIFIERS or column.name.endswith("_id"))


def _unit_of_name(name: str) -> str | None:
    for base, unit in BASE_UNITS.items():
        if name == base or name.endswith(f"_{base}"):
            return unit
    return next((unit for suffix, unit in SUFFIX_UNITS.items() if name.endswith(suffix)), None)
