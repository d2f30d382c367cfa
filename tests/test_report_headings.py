"""Columns of a report as people read them."""

from __future__ import annotations

import pytest

from hta_sql.report.headings import column_texts, column_words


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
    """The unit goes, acronyms are large, what is counted is a plural."""
    assert column_words(name, None) == words


def test_a_column_has_one_unit() -> None:
    """That of its largest number; what is not known is a dash, and no number becomes zero."""
    heading, cells = column_texts("wait_ns", [1_500_000, 20, 0, None], None)
    assert heading == "Wait (ms)"
    assert cells == ["1.500", "2e-05", "0", "–"]  # noqa: RUF001 - an en dash
    assert column_texts("used_bytes", [2_000_000_000], None) == ("Used (GB)", ["2.000"])
    assert column_texts("idle_pct", [12.345], None) == ("Idle (%)", ["12.35"])


def test_a_point_in_time_stays_a_number() -> None:
    """Nanoseconds since 1970 are not days."""
    assert column_texts("start_ns", [1765622428262054711], None) == (
        "Start (ns)",
        ["1765622428262054711"],
    )
