"""Renamed columns exist only under their new names."""

from __future__ import annotations

from hta_sql.library.objects import load_library
from tests.pinned.renames import lines_of


def test_renames_are_names_of_today() -> None:
    """Each analysis, column and parameter in the list exists only under its new name."""
    analyses = {one.base_name: one for one in load_library().newest()}
    for line in lines_of("renames.csv"):
        if line["analysis"]:
            about = analyses[line["analysis"]]
            names = {column.name for column in about.columns}
            names |= {parameter.name for parameter in about.parameters}
        else:
            names = set(analyses)
        assert line["new"] in names, line
        assert line["old"] not in names, line
