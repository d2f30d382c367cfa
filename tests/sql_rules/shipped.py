"""Rules of the shipped library only: topics, headers, derived tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.rules.problem import Found, Problem, column_line, located
from hta_sql.library.rules.references import references
from hta_sql.library.rules.statement import read_statement
from hta_sql.library.rules.text import columns_of

TOPICS = (
    "timeline",
    "kernels",
    "launch",
    "communication",
    "serving",
    "operators",
    "memory",
    "modules",
    "path",
    "compare",
    "health",
    "advice",
)
_SHARE_OR_RATE = re.compile(r"_(pct|share|per_s)$")
_DENOMINATOR = re.compile(r"\b(share of|part of|per second of)\b| / ", re.IGNORECASE)
FACTS = ("Title", "Status", "Since", "Reference", "Needs")


def shipped_problems(library: Library) -> Iterator[Problem]:
    """Yield the problems that only the rules of the shipped library find."""
    for analysis in library.analyses:
        if analysis.topic not in TOPICS:
            said = f"it stands in {analysis.topic}/; the topics are {' '.join(TOPICS)}"
            yield located(analysis, ("", said))
        for found in denominators(analysis):
            yield located(analysis, found)
    with duckdb.connect(":memory:") as con:
        for about in library.derived:
            for found in (*derived_table(library, about), *_references(con, library, about)):
                yield located(about, found)


def denominators(about: SqlObject) -> Iterator[Found]:
    """Yield a problem for each column with a share or a rate that states no denominator."""
    for column in about.columns:
        if _SHARE_OR_RATE.search(column.name) and not _DENOMINATOR.search(column.doc):
            said = (
                f"column {column.name} has no denominator; write 'share of …', 'part of …', "
                "'per second of …' or 'a / b'"
            )
            yield column_line(column.name), said


def derived_table(library: Library, about: SqlObject) -> Iterator[Found]:
    """Check that a derived table is versioned, takes runs, and is read by the view of that name."""
    name = about.base_name
    if about.version is None:
        yield "", f"its name has no version; call it {about.name}_v1, in the file's name too"
    if [parameter.name for parameter in about.parameters] != ["runs"]:
        yield (
            "",
            "it takes other parameters than runs; a derived table is kept for all ranks of a run",
        )
    if columns_of(about) != name:
        yield (
            "",
            f"it does not say '-- Columns: those of {name}.'; the view of the table lists them",
        )
    view = next((table for table in library.tables if table.name == name), None)
    if view is None or f"derived.{name}" not in view.text:
        yield "", f"no view shows it; write sql/tables/{name}.sql, which reads derived.{name}"


def _references(
    con: duckdb.DuckDBPyConnection, library: Library, about: SqlObject
) -> Iterator[Found]:
    try:
        statement = read_statement(con, about)
    except LibraryError:
        return  # the rules for all files report this
    yield from references(library, statement, "a derived table uses tables and lib")
