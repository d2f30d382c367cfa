"""Tests of the readable column headings in a report."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hta_sql.report.headings import column_texts, column_words, headings


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exposed_communication_ns", "Exposed communication"),
        ("peak_memory_bytes", "Peak memory"),
        ("mfu_pct", "MFU"),
        ("event_count", "Events"),
        ("cpu_op_count", "CPU operations"),
        ("late_count", "Late count"),
        ("ts", "Start"),
        ("rank", "Rank"),
    ],
)
def test_names_are_words(name: str, words: str) -> None:
    """Headings are words: units are removed, acronyms are uppercase, and counts become plurals."""
    assert column_words(name, None) == words


def test_a_column_has_one_unit() -> None:
    """A column has the unit that suits most of its numbers.

    Unknown values are shown as a dash, and only zero is shown as 0.
    """
    heading, cells = column_texts("wait_ns", [1_500_000, 2_000_000, 900_000, 20, 0, None], None)
    assert heading == "Wait (ms)"
    assert cells == ["1.500", "2.000", "0.900", "<0.001", "0", "–"]  # noqa: RUF001 - an en dash
    assert column_texts("used_bytes", [2_000_000_000], None) == ("Used (GB)", ["2.000"])
    assert column_texts("idle_pct", [12.345], None) == ("Idle (%)", ["12.35"])
    assert column_texts("sent_bytes", [192], None) == ("Sent (bytes)", ["192"])
    assert column_texts("bytes", [192], None) == ("Bytes", ["192"])


def test_the_unit_of_a_column_is_not_that_of_its_largest_number_alone() -> None:
    """A single value of seconds among microseconds does not change the unit of the column."""
    heading, cells = column_texts("self_ns", [1_500_000_000, 890_000, 37_000, 41_000], None)
    assert heading == "Self (ms)"
    assert cells == ["1,500.000", "0.890", "0.037", "0.041"]
    # A much larger value does not get a long row of digits either.
    assert column_texts("self_ns", [10**12, 37_000, 37_000], None)[1][0] == "1,000.000"


def test_columns_of_the_same_words_are_told_apart() -> None:
    """Columns with equal headings get a suffix unless their units distinguish them."""
    rows: dict[str, Any] = {
        "self_ns": [5, 6],
        "self_bytes": None,
        "self_pct": [1.0, 2.0],
        "kernel_count": [1, 2],
    }
    rows |= {"kernels": ["a", "b"], "cause": None, "cause_ns": None, "step_count": [3, 3]}
    table = pa.table({name: values or pa.nulls(2, pa.int64()) for name, values in rows.items()})
    words = headings(table, None)
    assert list(words.values()) == [
        *("Self", "Self (memory)", "Self", "Kernel count", "Kernels", "Cause", "Cause (time)"),
        "Steps",
    ]
    written = [
        column_texts(name, table.column(name).to_pylist(), None, words[name])[0] for name in words
    ]
    assert len(set(written)) == len(written)


def test_a_unix_time_is_a_date() -> None:
    """Nanoseconds since 1970 are shown as a date; those since another start stay a number."""
    assert column_texts("start_ns", [1_795_528_406_289_130_609, None], None) == (
        "Start (UTC)",
        ["2026-11-24 13:53:26.289130", "–"],  # noqa: RUF001 - same dash as in tables
    )
    assert column_texts("start_ns", [5_000_000_000_000_000], None) == (
        "Start (ns)",
        ["5000000000000000"],
    )
