"""Tests that generated pages in docs/ are current, and that the diagram uses existing names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import analyses, schema, stored_columns
from docs.generate.page import with_reference
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import sql_root

DOCS = Path(__file__).parent.parent / "docs"
SCHEMA = DOCS / "schema.md"


@pytest.mark.parametrize(
    ("page", "begin", "reference"),
    [
        ("schema.md", schema.BEGIN, schema.reference),
        ("analyses.md", analyses.BEGIN, analyses.reference),
    ],
)
def test_the_page_is_current(page: str, begin: str, reference: object) -> None:
    """``make docs`` would not change the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert callable(reference)
    assert text == with_reference(text, begin, reference()), "run: make docs"


def test_the_pages_of_topics_are_current() -> None:
    """``make docs`` would not change, add or remove a page of a topic."""
    found = {p.name: p.read_text(encoding="utf-8") for p in (DOCS / "analyses").glob("*.md")}
    assert found == analyses.pages(), "run: make docs"


def test_the_diagram_names_tables_and_columns_that_exist() -> None:
    """Each line of the entity diagram names two tables and columns of these tables."""
    columns = {t.name: {c.name for c in t.columns} for t in load_library().tables}
    text = SCHEMA.read_text(encoding="utf-8")
    lines = re.findall(r"^    (\w+) \S+ (\w+) : \"([^\"]+)\"$", text, re.MULTILINE)
    assert len(lines) >= 12
    for one, many, key in lines:
        for name in re.findall(r"\w+", key):
            assert name in columns[one] | columns[many], (one, many, key)


def test_every_table_is_on_the_page() -> None:
    """Every table has a heading on the page."""
    text = SCHEMA.read_text(encoding="utf-8")
    for table in load_library().tables:
        assert f"\n## {table.name}\n" in text


def test_what_people_wrote_around_it_stays() -> None:
    """Only the text between the markers is generated, and the text around it is kept."""
    page = "above\n<b>\nold\n<!-- end of reference -->\nbelow\n"
    new = with_reference(page, "<b>", "new")
    assert new == "above\n<b>\n\nnew\n\n<!-- end of reference -->\nbelow\n"


def test_the_stored_columns_are_those_that_the_ingest_makes() -> None:
    """``make docs`` would not change the list of stored columns or their order."""
    assert (sql_root() / "stored_columns.json").read_text(encoding="utf-8") == stored_columns.text()
