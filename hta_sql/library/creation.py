"""Creates the views and macros of the library, with their comments, over empty tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library import sqltext
from hta_sql.library.answers import answers, columns_of
from hta_sql.library.arguments import argument_columns
from hta_sql.library.data_tables import data_tables, operation_macros
from hta_sql.library.declared import Column
from hta_sql.library.engine_settings import ignore_python_variables
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.sql_files import Columns, query_sql, stored_columns

MICROSECONDS = "us"
"""Schema of the views with times in microseconds."""


def create_objects(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    """Create everything above the empty tables, in one transaction.

    The engine binds an object together with everything it calls. To save time, objects that depend
    on analyses are created while the analyses are stubs with columns only (3 s instead of 12 s).
    """
    con.begin()
    for table in library.tables:
        con.execute(table.text)
        _comment(con, "VIEW", table.name, table)
    for macro in library.macros_in_order:
        con.execute(macro.text)
        kind = "MACRO" if macro.is_scalar else "MACRO TABLE"
        _comment(con, kind, f"lib.{macro.name}", macro)
    for derived in library.derived:
        con.execute(derived.text)
        _comment(con, "MACRO TABLE", f"derived.{derived.name}", derived)
    for analysis in library.analyses:
        con.execute(_macro(analysis, analysis.name, sqltext.values(columns_of(analysis), [])))
    for analysis in library.newest():
        _create_unversioned(con, analysis, is_materialized=analysis.base_name in answers(library))
    _create_list_of_analyses(con, library)
    con.execute(sqltext.create_schema(MICROSECONDS))
    for about in (*library.tables, *library.newest()):
        _create_microsecond_view(con, about)
    for name, analysis in answers(library).items():
        con.execute(sqltext.answer_view(name, columns_of(analysis), (), analysis.name))
    for analysis in library.analyses:
        _create_version(con, analysis)
    _compute_derived(con, library)
    con.commit()


def add_objects(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    """Create the objects that a library adds to the shipped library, in one transaction.

    Raises:
        LibraryError: The engine rejects a file; the message names the line.
    """
    ignore_python_variables(con)
    con.begin()
    _create_empty(con, "derived", library.derived_columns())
    own = library.user_library
    for about in (*own.macros_in_order, *own.analyses):
        with naming(about):
            create_one(con, about)
    for about in own.newest():
        with naming(about):
            _create_unversioned(con, about)
            _create_microsecond_view(con, about)
    _create_list_of_analyses(con, library)
    _compute_derived(con, library)
    con.commit()


_REFUSED_WORD = re.compile(r'"(\w+)"|name (\w+) does not')
_REFUSED_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)


@contextmanager
def naming(about: SqlObject) -> Iterator[None]:
    """Convert an engine error about a file to an error with its path and line.

    Raises:
        LibraryError: The engine rejected the file.
    """
    try:
        yield
    except duckdb.Error as error:
        said = str(error).partition("\n")[0]
        line = refused_line(about, error)
        raise LibraryError(
            f"{about.path}:{line}: the engine rejects the statement: {said}."
        ) from error


def refused_line(about: SqlObject, error: duckdb.Error) -> int:
    """Return the line of a file that an engine error refers to.

    The engine's line number may be off by one in a macro, so the line with the word quoted in the
    error takes precedence.
    """
    said = _REFUSED_LINE.search(str(error))
    lines = about.text.splitlines()
    near = int(said.group(1)) if said else len(lines)
    found = _REFUSED_WORD.findall(str(error).partition("\n")[0])
    word = max((one or other for one, other in found), key=len, default=None)
    meant = [number for number, line in enumerate(lines, 1) if word and word in line]
    return min(meant, key=lambda number: abs(number - near), default=near if said else 1)


def create_one(con: duckdb.DuckDBPyConnection, about: SqlObject) -> None:
    """Create a user's macro or analysis: one statement that creates the declared object.

    Raises:
        LibraryError: The file contains another statement, or has the name of an engine function.
        duckdb.Error: The engine rejects the statement.
    """
    kinds = [statement.type.name for statement in con.extract_statements(about.text)]
    if kinds != ["CREATE"]:
        words = ", ".join(kinds)
        raise LibraryError(
            f"{about.path}:1: a file must contain one CREATE statement, but this one contains: {words}."
        )
    question = query_sql("engine", "has_function"), {"name": about.base_name}
    if about.version and con.execute(*question).fetchall() == [(True,)]:
        raise LibraryError(
            f"{about.path}:1: {about.base_name} is already the name of a built-in DuckDB function; choose another name."
        )
    if about.version:
        _create_version(con, about)
        return
    con.execute(about.text)
    _comment(con, "MACRO" if about.is_scalar else "MACRO TABLE", f"lib.{about.name}", about)


def _create_version(con: duckdb.DuckDBPyConnection, analysis: SqlObject) -> None:
    con.execute(analysis.text)
    _comment(con, "MACRO TABLE", analysis.name, analysis)


def _create_unversioned(
    con: duckdb.DuckDBPyConnection, analysis: SqlObject, *, is_materialized: bool = False
) -> None:
    """Create the unversioned macro and view; the view reads the materialized answer if possible."""
    con.execute(_unversioned_macro(analysis))
    shown = sqltext.stored_answer(analysis.base_name) if is_materialized else f"{analysis.name}()"
    con.execute(sqltext.view_of(analysis.base_name, shown, replaces=False))
    _comment(con, "MACRO TABLE", analysis.base_name, analysis)
    _comment(con, "VIEW", analysis.base_name, analysis)


def _compute_derived(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    """Create the views that compute the derived tables until they are materialized.

    Must be called last. Objects that read a derived table are bound five times; if the table's full
    definition existed earlier, each of these would bind it too (12 s instead of 4 s).
    """
    for derived in library.derived:
        columns = library.derived_columns()[derived.base_name]
        con.execute(sqltext.derived_view(derived.base_name, columns, (), derived.name))


def create_empty_tables(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    """Create the schemas, and for the library's views the tables with its own rows and empty tables."""
    for schema in ("stored", "lib", "derived", "materialized"):
        con.execute(sqltext.create_schema(schema))
    # span is not stored in the files; the view over the files adds it.
    stored = {table: kinds | {"span": "INTEGER"} for table, kinds in stored_columns().items()}
    _create_empty(con, "stored", stored)
    _create_empty(con, "derived", library.derived_columns())
    _create_empty(
        con, "materialized", {name: columns_of(a) for name, a in answers(library).items()}
    )
    con.execute(argument_columns())
    for statement in (*data_tables(library.tables), *operation_macros(library.tables)):
        con.execute(statement)
    for name, kinds in (SCOPE_TABLES | {"kept_answers": KEPT_ANSWERS}).items():
        con.execute(sqltext.values_view(f"stored.{name}", kinds, []))


def _create_empty(con: duckdb.DuckDBPyConnection, schema: str, columns: Columns) -> None:
    for name, kinds in columns.items():
        con.execute(sqltext.values_view(f"{schema}.{sqltext.identifier(name)}", kinds, []))


RANK_SCOPE = {
    "run": "VARCHAR",
    "rank": "INTEGER",
    "span": "INTEGER",
    "offset_ns": "BIGINT",
    "drops_last_step": "BOOLEAN",
    "missing_columns": "VARCHAR",
    "definitions_changed": "BOOLEAN",
    "start_ns": "BIGINT",
    "dur": "BIGINT",
    "event_count": "BIGINT",
    "step_count": "BIGINT",
    "world_size": "BIGINT",
    "first_rank": "INTEGER",
    "host_name": "VARCHAR",
    "backend": "VARCHAR",
    "nccl_version": "VARCHAR",
    "device_name": "VARCHAR",
    "framework": "VARCHAR",
    "git_sha": "VARCHAR",
    "ingested_ns": "BIGINT",
    "size_bytes": "BIGINT",
}
"""Columns of the facts that the catalog stores about each rank."""

RUN_TAGS = {"run": "VARCHAR", "tag": "VARCHAR", "tag_value": "VARCHAR"}
"""Tags of each run, set by users."""

KEPT_ANSWERS = {"name": "VARCHAR", "run": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT"}
"""Columns of the list of materialized answers that views read, one per analysis and run."""

SCOPE_TABLES = {"rank_scope": RANK_SCOPE, "run_tags": RUN_TAGS}
"""Tables that are stored in the catalog itself."""


def _create_microsecond_view(con: duckdb.DuckDBPyConnection, about: SqlObject) -> None:
    """Create a view in microseconds for dashboards, which display raw column values."""
    columns = tuple(microsecond_column(column) for column in about.columns)
    values = [
        (sqltext.identifier(old.name) + ("" if new is old else " / 1000"), new.name)
        for old, new in zip(about.columns, columns, strict=True)
    ]
    view = f"{MICROSECONDS}.{sqltext.identifier(about.base_name)}"
    base = f"main.{sqltext.identifier(about.base_name)}"
    con.execute(sqltext.renaming_view(view, base, values))
    _comment(con, "VIEW", view, about, columns)


def microsecond_column(column: Column) -> Column:
    """Return a column of ns converted to µs: ``ts`` ─▶ ``ts_us``, ``idle_ns`` ─▶ ``idle_us``."""
    if column.unit != "ns":
        return column
    return replace(column, name=f"{column.name.removesuffix('_ns')}_us", type="DOUBLE", unit="us")


def _unversioned_macro(analysis: SqlObject) -> str:
    """Return the statement that creates the unversioned macro: a call to the newest version.

    A copy of the newest version's text would double the size of the catalog.
    """
    same = sqltext.call(analysis.name, {p.name: p.name for p in analysis.parameters})
    return _macro(analysis, analysis.base_name, same)


def _macro(analysis: SqlObject, name: str, body: str) -> str:
    """Return the statement that creates a table macro with an analysis's parameters and a body."""
    declared = [f"{p.name} {p.type} := {p.default}" for p in analysis.parameters]
    return sqltext.table_macro(name, declared, body)


def _comment(
    con: duckdb.DuckDBPyConnection,
    kind: str,
    name: str,
    about: SqlObject,
    columns: tuple[Column, ...] | None = None,
) -> None:
    docs = {
        column.name: f"{column.doc} [{column.unit}]" if column.unit else column.doc
        for column in columns or about.columns
    }
    for statement in sqltext.comments(
        kind, name, about.full_description, docs if kind == "VIEW" else {}
    ):
        con.execute(statement)


ANALYSES = {
    "name": ("VARCHAR", "Name without version: a view with the defaults, and a macro."),
    "version": ("INTEGER", "Version; name_v1 is its macro."),
    "is_default": ("BOOLEAN", "Whether the name without version stands for this version."),
    "status": ("VARCHAR", "stable or experimental."),
    "since": ("VARCHAR", "First version of hta_sql with this analysis."),
    "topic": ("VARCHAR", "Topic: communication, kernels, memory ..."),
    "title": ("VARCHAR", "Title."),
    "summary": ("VARCHAR", "Result, in one sentence."),
    "parameters": ("VARCHAR", "Parameters of the macro, with types and defaults."),
    "columns": ("VARCHAR", "Columns of the result, in order."),
    "needs": ("VARCHAR", "Data that a trace must contain; NULL if nothing special."),
    "reference": ("VARCHAR", "Equivalent in other tools."),
}
"""Column of the view ``analyses`` ─▶ type and description."""


def _create_list_of_analyses(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    """Create the view ``analyses``, which lists the analyses."""
    newest = {a.name for a in library.newest()}
    rows = [
        (
            a.base_name,
            a.version,
            a.name in newest,
            a.status,
            a.facts.get("Since"),
            a.topic,
            a.title,
            a.summary,
            ", ".join(f"{p.name} {p.type} := {p.default}" for p in a.parameters),
            ", ".join(c.name for c in a.columns),
            a.facts.get("Needs"),
            a.facts.get("Reference"),
        )
        for a in sorted(library.analyses, key=lambda a: (a.base_name, a.version or 0))
    ]
    columns = {name: kind for name, (kind, _) in ANALYSES.items()}
    con.execute(sqltext.values_view("analyses", columns, rows))
    docs = {name: doc for name, (_, doc) in ANALYSES.items()}
    for statement in sqltext.comments(
        "VIEW", "analyses", "All analyses, one row per version.", docs
    ):
        con.execute(statement)
