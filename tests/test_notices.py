"""Tests that the licenses of programs that are passed on are passed on, too."""

from __future__ import annotations

from hta_sql.charts.page import bundle


def test_a_page_with_charts_has_the_licenses_of_its_scripts() -> None:
    """Reports and charts embed Vega, whose license demands its notice."""
    start = bundle()[:8000]
    assert start.startswith("/*!")
    for words in ("University of Washington Interactive Data Lab", "BSD 3-Clause", "ISC License"):
        assert words in start
