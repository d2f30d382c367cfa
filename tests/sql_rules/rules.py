"""What a file of the library has to say, and what its statement may refer to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library.objects import REPORT, Library, SqlObject
from tests.sql_rules.statement import Statement, count_statements, read_statement
from tests.sql_rules.units import unit_problems

TOPICS = (
    "timeline",
    "kernels",
    "launch",
    "communication",
    "operators",
    "memory",
    "modules",
    "path",
    "compare",
    "health",
    "advice",
)
STATUSES = ("stable", "experimental")
FACTS = ("Status", "Since", "Reference", "Needs")

SCOPE = {
    "runs": ("VARCHAR[]", "NULL"),
    "ranks": ("INTEGER[]", "NULL"),
    "steps": ("BIGINT[]", "NULL"),
    "include_last_profiler_step": ("BOOLEAN", "false"),
}
"""The parameters that every analysis begins with, with type and default; fewer, the first ones,
where its fact Scope names them and says why: ``Scope: runs, ranks; is the same in every step``."""

TABLE_FUNCTIONS = {"unnest", "range", "generate_series"}
"""What an analysis may call beside lib: nothing that reads a file or a setting."""

_LAUNCH_NAME = re.compile(r"(cuda|cu|hip|aclrt)\w*(Launch|Memcpy|Memset)|LaunchKernel")
_COLUMNS_OF = re.compile(r"^\) AS TABLE\n-- Columns: those of (\w+)\.$", re.MULTILINE)
_BY_RANK = re.compile(r"^ORDER BY\s+\w+\.run,\s+\w+\.rank\b", re.MULTILINE)
_SINCE = re.compile(r"^\d+\.\d+(\.\d+)?$")


def text_problems(library: Library, golden: Path | None) -> Iterator[str]:
    """Yield what is wrong with the files of a library, each message with its file."""
    with duckdb.connect(":memory:") as con:
        for about in (*library.tables, *library.macros, *library.derived, *library.analyses):
            for problem in _of_one(con, library, about, golden):
                yield f"{about.path}: {problem}."


def _of_one(
    con: duckdb.DuckDBPyConnection, library: Library, about: SqlObject, golden: Path | None
) -> Iterator[str]:
    yield from form(con, about)
    yield from words(about)
    in_analysis = about in library.analyses
    for column in about.columns:
        yield from unit_problems(column, in_analysis=in_analysis)
    if about in library.tables:
        return
    yield from shadowing(library, about)
    if in_analysis and about.is_scalar:
        yield "it returns one value; an analysis returns rows: AS TABLE"
        return
    try:
        statement = read_statement(con, about)
    except LibraryError as error:
        yield f"the engine cannot parse it: {error}"
        return
    if in_analysis:
        yield from header(about)
        yield from drawn_from(library, about)
        yield from reported(about)
        yield from scope(about)
        yield from apart(about)
        yield from references_of_analysis(library, statement)
        yield from golden_test(about, golden)
    elif about in library.derived:
        yield from derived_table(library, about)
        yield from references_of_derived(library, statement)
    else:
        yield from references_of_lib(library, statement)


def form(con: duckdb.DuckDBPyConnection, about: SqlObject) -> Iterator[str]:
    """One statement, under the name of the file."""
    if about.path.stem != about.name:
        yield f"it creates {about.name}; call the file {about.name}.sql"
    try:
        count = count_statements(con, about.text)
    except LibraryError as error:
        yield f"the engine cannot parse it: {error}"
        return
    if count != 1:
        yield f"it holds {count} statements; a file is one statement"


def words(about: SqlObject) -> Iterator[str]:
    """Columns are listed once each, what a scalar macro returns is said; parameters have words."""
    if about.is_scalar and not about.columns:
        yield "it does not say what it returns; write '-- Returns: TYPE  what' behind AS"
    elif not about.columns and not columns_of(about):
        yield (
            "it documents no columns; list them under '-- Columns:' behind AS (a lib macro that "
            "returns the rows of a table says '-- Columns: those of gpu_ops.')"
        )
    names = Counter(column.name for column in about.columns)
    for name in (name for name, count in names.items() if count > 1):
        yield f"column {name} is documented twice"
    for parameter in about.parameters:
        if not parameter.doc:
            yield f"parameter {parameter.name} has no words; say above it what it means"


def columns_of(about: SqlObject) -> str | None:
    """What has the columns that a lib macro returns, where it says so instead of listing them."""
    found = _COLUMNS_OF.search(about.text)
    return found.group(1) if found else None


def header(about: SqlObject) -> Iterator[str]:
    """The facts of an analysis, its version and its folder."""
    for fact in FACTS:
        if fact not in about.facts:
            yield f"the header has no line '-- {fact}: ...'"
    if about.status not in STATUSES:
        yield f"Status is {about.status!r}; write {' or '.join(STATUSES)}"
    if not _SINCE.match(about.facts.get("Since", "0.1")):
        yield f"Since is {about.facts['Since']!r}; write the release, such as 0.1"
    if about.version is None:
        yield f"its name has no version; call it {about.name}_v1, in the file's name too"
    elif about.version > 1 and "Changed" not in about.facts:
        yield f"version {about.version} does not say what changed; add a line '-- Changed: ...'"
    if about.topic not in TOPICS:
        yield f"it stands in {about.topic}/; the topics are {' '.join(TOPICS)}"


def drawn_from(library: Library, about: SqlObject) -> Iterator[str]:
    """What a chart is drawn from is there."""
    other = about.facts.get("Drawn from")
    if other and other not in {analysis.base_name for analysis in library.analyses}:
        yield f"Drawn from names {other!r}; write the name of an analysis, without version"


def reported(about: SqlObject) -> Iterator[str]:
    """What the header says about the section in a report is understood, and names parameters."""
    for word in about.report:
        match = REPORT.fullmatch(word)
        if not match or (match["name"] and match["name"] not in {p.name for p in about.parameters}):
            yield (
                f"Report says {word!r}; write first, table, chart, at most N ranks or parameter := N"
            )


def apart(about: SqlObject) -> Iterator[str]:
    """Rows of ranks that may be asked one by one stand one rank behind the other."""
    told = about.facts.get("Ranks")
    if told is not None and (told != "apart" or not _BY_RANK.search(about.text)):
        yield f"Ranks is {told!r}; it may be apart, where the rows are ordered by run and rank first"


def scope(about: SqlObject) -> Iterator[str]:
    """Every analysis takes the same scope first, and every parameter has type and default."""
    for parameter in about.parameters:
        if parameter.type is None or parameter.default is None:
            yield f"parameter {parameter.name} needs a type and a default: name TYPE := default"
    names = list(SCOPE)
    if own := about.facts.get("Scope"):
        fewer, _, why = own.partition("; ")
        if not why or fewer.split(", ") != names[: len(fewer.split(", "))]:
            yield f"Scope is {own!r}; write the first of {', '.join(names)}; and why no more"
            return
        names = fewer.split(", ")
    wanted = [(name, *SCOPE[name]) for name in names]
    if [(p.name, p.type, p.default) for p in about.parameters[: len(names)]] != wanted:
        ddl = ", ".join(f"{name} {kind} := {default}" for name, kind, default in wanted)
        yield (
            f"it does not begin with the parameters {ddl}; add them, or say "
            "in a fact Scope which it has and why"
        )


def shadowing(library: Library, about: SqlObject) -> Iterator[str]:
    """A parameter named like a column replaces the column in silence."""
    columns = {column.name: table.name for table in library.tables for column in table.columns}
    own = {column.name: "this file" for column in about.columns}
    for parameter in about.parameters:
        if found := {**own, **columns}.get(parameter.name):
            yield f"parameter {parameter.name} is also a column of {found}; call it otherwise"


def references_of_analysis(library: Library, statement: Statement) -> Iterator[str]:
    """Tables and lib only; plain CTE names, no names of launch functions, ordered rows."""
    yield from _unknown_tables(library, statement)
    for name in sorted(statement.functions - TABLE_FUNCTIONS - _lib_names(library)):
        yield f"it calls {name}; an analysis uses tables and lib, never another analysis"
    for name in _starting_with_underscore(statement.ctes):
        yield f"CTE {name} starts with _; those of lib do, so that the two never meet"
    for text in sorted(filter(_LAUNCH_NAME.search, statement.texts)):
        yield f"it contains the launch name {text!r}; find launches by correlation (launch_id)"
    if not statement.is_ordered:
        yield "it does not end with an ORDER BY; equal input has to give equal output"


def derived_table(library: Library, about: SqlObject) -> Iterator[str]:
    """What computes a table has a version, takes the runs, and stands behind the view of its table."""
    name = about.base_name
    if about.version is None:
        yield f"its name has no version; call it {about.name}_v1, in the file's name too"
    if [parameter.name for parameter in about.parameters] != ["runs"]:
        yield "it takes other parameters than runs; a derived table is kept for all ranks of a run"
    if columns_of(about) != name:
        yield f"it does not say '-- Columns: those of {name}.'; the view of the table lists them"
    view = next((table for table in library.tables if table.name == name), None)
    if view is None or f"derived.{name}" not in view.text:
        yield f"no view shows it; write sql/tables/{name}.sql, which reads derived.{name}"


def references_of_derived(library: Library, statement: Statement) -> Iterator[str]:
    """Tables and lib only; plain CTE names, as in an analysis."""
    yield from _unknown_tables(library, statement)
    for name in sorted(statement.functions - TABLE_FUNCTIONS - _lib_names(library)):
        yield f"it calls {name}; a derived table uses tables and lib"
    for name in _starting_with_underscore(statement.ctes):
        yield f"CTE {name} starts with _; those of lib do, so that the two never meet"


def references_of_lib(library: Library, statement: Statement) -> Iterator[str]:
    """Tables, lib and the relation that it is given; CTEs that cannot hide that relation."""
    yield from _unknown_tables(library, statement)
    allowed = {*TABLE_FUNCTIONS, "query_table", *_lib_names(library)}
    for name in sorted(statement.functions - allowed):
        yield f"it calls {name}; lib uses tables and lib"
    for name in set(statement.ctes) - set(_starting_with_underscore(statement.ctes)):
        yield f"CTE {name} could hide a caller's relation of that name; call it _{name}"


def golden_test(about: SqlObject, golden: Path | None) -> Iterator[str]:
    """Every analysis has a golden test in the folder of its topic."""
    if golden is None:
        return
    path = golden / about.topic / f"{about.name}.test"
    if not path.exists():
        yield (
            f"it has no golden test; write tests/golden/{about.topic}/{about.name}.test "
            "(trace, call, expected rows)"
        )


def _lib_names(library: Library) -> set[str]:
    return {f"lib.{macro.name}" for macro in library.macros}


def _unknown_tables(library: Library, statement: Statement) -> Iterator[str]:
    # A recursive CTE reads all of what it has so far as recurring.<its name>.
    own = {f"recurring.{cte}" for cte in statement.ctes}
    for name in sorted(statement.tables - {table.name for table in library.tables} - own):
        yield f"it reads {name}, which is not a table of sql/tables"


def _starting_with_underscore(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("_")]
