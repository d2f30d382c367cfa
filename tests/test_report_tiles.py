"""Tests of the headline figures of a report."""

from __future__ import annotations

import pytest

from hta_sql.report.tiles import idle_figure, mfu_figure


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        (
            89.0,
            ("MFU, share of the peak of 989 TFLOP/s, work known for 89 % of kernel time", "≥ 40 %"),
        ),
        (
            90.0,
            ("MFU, share of the peak of 989 TFLOP/s, work known for 90 % of kernel time", "40 %"),
        ),
        (None, ("MFU, share of the peak of 989 TFLOP/s", "40 %")),
    ],
)
def test_mfu_of_little_covered_time_is_a_lower_bound(
    covered: float | None, expected: tuple[str, str]
) -> None:
    """Below 90 % coverage, MFU is shown as a lower bound."""
    assert mfu_figure(40.0, 989.4, covered) == expected


def test_idle_time_has_one_tile() -> None:
    """Waiting for the host is part of the idle time, so it stands in the label of the same tile."""
    assert idle_figure(13.0, 12.0) == ("idle, 12 % waiting for the host", "13 %")
    assert idle_figure(13.0, None) == ("idle", "13 %")
