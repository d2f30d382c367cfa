"""Tests that MFU is shown as a lower bound, in terminals and reports, if kernels are unknown."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hta_sql.library.objects import load_library
from hta_sql.report.tables import table_markup
from hta_sql.results.display import TableRows, text_columns

COVERED = {"mfu": "covered_pct", "kpis": "mfu_covered_pct"}


def shown(name: str, covered: list[float | None]) -> Iterator[str]:
    """Yield the cells of mfu_pct as a terminal shows them."""
    analysis = next(a for a in load_library().analyses if a.base_name == name)
    runs = [f"run {number}" for number in range(len(covered))]
    table = pa.table({"run": runs, "mfu_pct": [40.0] * len(covered), COVERED[name]: covered})
    rows = TableRows(table, analysis)
    (column,) = (column for column in text_columns(rows) if column.name == "mfu_pct")
    yield from column.cells


@pytest.mark.parametrize("name", COVERED)
def test_mfu_with_less_than_90_percent_covered_is_a_lower_bound(name: str) -> None:
    """MFU is a lower bound below 90 % coverage, but not if the coverage is unknown."""
    below, from_90, unknown = shown(name, [89.9, 90.0, None])
    assert below.startswith("≥ ")
    assert from_90 == unknown == below.removeprefix("≥ ")


@pytest.mark.parametrize("name", COVERED)
def test_the_tables_of_a_report_show_the_same(name: str) -> None:
    """A table in a report shows lower bounds like the terminal."""
    analysis = next(a for a in load_library().analyses if a.base_name == name)
    table = pa.table({"run": ["a", "b"], "mfu_pct": [41.0, 42.0], COVERED[name]: [50.0, 95.0]})
    markup = str(table_markup(TableRows(table, analysis), 10))
    assert "≥ 41" in markup
    assert "≥ 42" not in markup
