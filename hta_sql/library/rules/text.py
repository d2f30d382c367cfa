"""Checks the documentation of a library file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library.answers import first_terms
from hta_sql.library.chart_header import chart_problems
from hta_sql.library.header import CHART, REPORT, TITLE_CHARACTERS
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.rules.problem import (
    Found,
    Problem,
    column_line,
    fact_line,
    located,
    parameter_line,
)
from hta_sql.library.rules.references import references_of_analysis, references_of_lib
from hta_sql.library.rules.statement import count_statements, read_statement
from hta_sql.library.rules.units import unit_problems

STATUSES = ("stable", "experimental")
FACTS = ("Title", "Status", "Needs")

SCOPE = {
    "runs": ("VARCHAR[]", "NULL"),
    "ranks": ("INTEGER[]", "NULL"),
    "steps": ("BIGINT[]", "NULL"),
    "include_last_profiler_step": ("BOOLEAN", "false"),
}
"""Parameters that every analysis starts with, with type and default.

An analysis may have only the first of them if its fact Scope lists these and gives the reason:
``Scope: runs, ranks; is the same in every step``.
"""

_COLUMNS_OF = re.compile(r"^\) AS TABLE\n-- Columns: those of (\w+)\.$", re.MULTILINE)
_BY_RANK = re.compile(r"^ORDER BY\s+\w+\.run,\s+\w+\.rank\b", re.MULTILINE)
_SINCE = re.compile(r"^\d+\.\d+(\.\d+)?$")


def text_problems(
    library: Library,
    abouts: Iterable[SqlObject],
    golden: Path | None,
    facts: tuple[str, ...] = FACTS,
) -> Iterator[Problem]:
    """Yield the problems in the documentation of files.

    Args:
        library: The library that the files belong to.
        abouts: The files.
        golden: Folder of the golden tests, by topic; None: golden tests are not required.
        facts: Required facts in the header of an analysis.
    """
    with duckdb.connect(":memory:") as con:
        for about in abouts:
            for found in _of_one(con, library, about, facts):
                yield located(about, found)
            if about in library.analyses:
                yield from (located(about, found) for found in golden_test(about, golden))


def _of_one(
    con: duckdb.DuckDBPyConnection, library: Library, about: SqlObject, facts: tuple[str, ...]
) -> Iterator[Found]:
    yield from form(con, about)
    yield from words(about)
    in_analysis = about in library.analyses
    for column in about.columns:
        for problem in unit_problems(column, in_analysis=in_analysis):
            yield column_line(column.name), problem
    if about in library.tables:
        return
    yield from shadowing(library, about)
    if in_analysis and about.is_scalar:
        yield "", "it returns one value; an analysis returns rows: AS TABLE"
        return
    try:
        statement = read_statement(con, about)
    except LibraryError as error:
        yield "", f"the engine cannot parse it: {error}"
        return
    if in_analysis:
        yield from header(about, facts)
        yield from drawn_from(library, about)
        yield from reported(about)
        yield from shown(about)
        yield from ((f"^-- {CHART}:", problem) for problem in chart_problems(about))
        yield from scope(about)
        yield from apart(about)
        yield from references_of_analysis(library, statement)
    elif about in library.macros:
        yield from references_of_lib(library, statement)


def form(con: duckdb.DuckDBPyConnection, about: SqlObject) -> Iterator[Found]:
    """Check that the file has one statement, which creates an object with the file's name."""
    if about.path.stem != about.name:
        yield "^CREATE", f"the file creates {about.name}; rename the file to {about.name}.sql"
    try:
        count = count_statements(con, about.text)
    except LibraryError as error:
        yield "", f"the engine cannot parse it: {error}"
        return
    if count != 1:
        yield "", f"the file contains {count} statements; it must contain one"


def words(about: SqlObject) -> Iterator[Found]:
    """Check that columns, return values and parameters are documented, each column once."""
    if about.is_scalar and not about.columns:
        yield (
            r"^\) AS",
            "the return value is not documented; write '-- Returns: TYPE  what' after AS",
        )
    elif not about.columns and not columns_of(about):
        yield (
            r"^\) AS",
            (
                "the columns are not documented; list them under '-- Columns:' after AS (in a lib macro that "
                "returns the rows of a table, write '-- Columns: those of gpu_ops.')"
            ),
        )
    names = Counter(column.name for column in about.columns)
    for name in (name for name, count in names.items() if count > 1):
        yield column_line(name), f"column {name} is documented twice"
    for parameter in about.parameters:
        if not parameter.doc:
            yield (
                parameter_line(parameter.name),
                f"parameter {parameter.name} is not documented; describe it in a comment above",
            )


def columns_of(about: SqlObject) -> str | None:
    """Return the object that a lib macro's documentation refers to for its columns."""
    found = _COLUMNS_OF.search(about.text)
    return found.group(1) if found else None


def header(about: SqlObject, facts: tuple[str, ...]) -> Iterator[Found]:
    """Check the header facts and the version of an analysis."""
    for fact in facts:
        if fact not in about.facts:
            yield "", f"the header has no line '-- {fact}: ...'"
    title = about.facts.get("Title", "")
    if len(title) > TITLE_CHARACTERS:
        said = f"Title has {len(title)} characters"
        yield fact_line("Title"), f"{said}; write at most {TITLE_CHARACTERS}"
    if about.status not in STATUSES:
        yield fact_line("Status"), f"Status is {about.status!r}; write {' or '.join(STATUSES)}"
    if not _SINCE.match(about.facts.get("Since", "0.1")):
        since = about.facts["Since"]
        yield fact_line("Since"), f"Since is {since!r}; write the release, such as 0.1"
    if about.version is None:
        wanted = f"{about.name}_v1"
        yield "^CREATE", f"the name has no version; rename the analysis and the file to {wanted}"
    elif about.version > 1 and "Changed" not in about.facts:
        said = f"version {about.version} does not state what changed"
        yield "", f"{said}; add a line '-- Changed: ...'"


def drawn_from(library: Library, about: SqlObject) -> Iterator[Found]:
    """Check that the analysis named in the fact ``Drawn from`` exists."""
    other = about.facts.get("Drawn from")
    if other and other not in {analysis.base_name for analysis in library.analyses}:
        yield (
            fact_line("Drawn from"),
            f"Drawn from names {other!r}; write the name of an analysis, without version",
        )


def reported(about: SqlObject) -> Iterator[Found]:
    """Check the syntax of the Report line, and that its parameters and columns exist."""
    names = {None, *(parameter.name for parameter in about.parameters)}
    columns = {None, *(column.name for column in about.columns)}
    for word in about.report:
        match = REPORT.fullmatch(word)
        if not match or match["name"] not in names or match["column"] not in columns:
            yield (
                fact_line("Report"),
                (
                    f"Report says {word!r}; write no, first N, table, chart, of several ranks or runs, "
                    "at most N ranks, if RELATION, without COLUMN: SENTENCE, or parameter := N"
                ),
            )


def shown(about: SqlObject) -> Iterator[Found]:
    """Check that the columns of the Shown line exist."""
    columns = {column.name for column in about.columns}
    for name in about.shown:
        if name not in columns:
            yield fact_line("Shown"), f"Shown names {name!r}, which is not a column of the analysis"


def apart(about: SqlObject) -> Iterator[Found]:
    """Check that the rows of an analysis with independent ranks can be concatenated and sorted."""
    ranks_fact = about.facts.get("Ranks")
    terms = [term.name for term in first_terms(about)]
    is_sorted = bool(_BY_RANK.search(about.text)) or (terms[:1] == ["run"] and "rank" in terms)
    if ranks_fact is not None and (ranks_fact != "independent" or not is_sorted):
        rule = (
            "the only allowed value is independent, and only if the rows are ordered by run and rank first, or "
            "by run and other columns of the analysis up to the rank"
        )
        yield fact_line("Ranks"), f"Ranks is {ranks_fact!r}; {rule}"


def scope(about: SqlObject) -> Iterator[Found]:
    """Check the scope parameters, and that every parameter has a type and a default."""
    for parameter in about.parameters:
        if parameter.type is None or parameter.default is None:
            yield (
                parameter_line(parameter.name),
                f"parameter {parameter.name} needs a type and a default: name TYPE := default",
            )
    names = list(SCOPE)
    if own := about.facts.get("Scope"):
        fewer, _, why = own.partition("; ")
        if not why or fewer.split(", ") != names[: len(fewer.split(", "))]:
            wanted = (
                f"list the first of {', '.join(names)}, then '; ' and why the others are missing"
            )
            yield fact_line("Scope"), f"Scope is {own!r}; {wanted}"
            return
        names = fewer.split(", ")
    declared = [(name, *SCOPE[name]) for name in names]
    if [(p.name, p.type, p.default) for p in about.parameters[: len(names)]] != declared:
        ddl = ", ".join(f"{name} {kind} := {default}" for name, kind, default in declared)
        yield (
            "^CREATE",
            (
                f"the first parameters must be {ddl}; add them, or state "
                "in a Scope line which of them the analysis has and why"
            ),
        )


def shadowing(library: Library, about: SqlObject) -> Iterator[Found]:
    """Check for parameters named like a column, which silently replace the column."""
    columns = {column.name: table.name for table in library.tables for column in table.columns}
    own = {column.name: "this file" for column in about.columns}
    for parameter in about.parameters:
        if found := {**own, **columns}.get(parameter.name):
            yield (
                parameter_line(parameter.name),
                f"parameter {parameter.name} is also a column of {found}; choose another name",
            )


def golden_test(about: SqlObject, golden: Path | None) -> Iterator[Found]:
    """Check that an analysis has a golden test in the folder of its topic."""
    if golden is None:
        return
    path = golden / about.topic / f"{about.name}.test"
    if not path.exists():
        yield "", f"the golden test is missing; write {path} (trace, call, expected rows)"
