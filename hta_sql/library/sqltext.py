"""Builds SQL text from names and literals, for statements that take no parameters, such as DDL.

All other code binds its values. Arguments documented as quoted cannot inject SQL, even if a run
name, path or comment is hostile. Arguments documented as trusted are inserted as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hta_sql.library.file_groups import FileGroup


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float | bool | None) -> str:
    """Quote a value as a literal."""
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int, float)):
        return repr(value).lower()
    return "'" + value.replace("\0", "").replace("'", "''") + "'"


def literal_list(values: Iterable[str]) -> str:
    """Quote a list of strings."""
    return "[" + ", ".join(literal(value) for value in values) + "]"


def values_view(name: str, columns: dict[str, str], rows: Iterable[Iterable[object]]) -> str:
    """Build a view over constant rows (see :func:`values`); the view's name is trusted."""
    return f"CREATE OR REPLACE VIEW {name} AS\n{values(columns, rows)}"


def values(columns: dict[str, str], rows: Iterable[Iterable[object]]) -> str:
    """Build a SELECT of constant rows; without rows it is empty but typed.

    Args:
        columns: Column name ─▶ type, trusted.
        rows: Values, quoted here.
    """
    selected = ", ".join(
        f"{identifier(column)}::{kind} AS {identifier(column)}" for column, kind in columns.items()
    )
    lines = [", ".join(literal(value) for value in row) for row in rows]  # type: ignore[arg-type]
    nothing = ", ".join("NULL" for _ in columns)
    body = ",\n".join(f"({line})" for line in lines) or f"({nothing})"
    named = ", ".join(identifier(column) for column in columns)
    where = "" if lines else "\nWHERE false"
    return f"SELECT {selected}\nFROM (VALUES {body}) AS v({named}){where}"


def parquet_view(table: str, columns: Mapping[str, str], parts: Iterable[FileGroup]) -> str:
    """Build the view of a stored table over the Parquet files of its ranks.

    Every file is listed: a list is faster than a glob, and never includes incomplete files. Every
    column is listed as well: files written by an older version may have other types or lack
    columns, which are then NULL.

    Args:
        table: Name of the table.
        columns: Column ─▶ type of the view.
        parts: The files.
    """
    selects = [_rows_of_files(columns, part) for part in parts]
    return f"CREATE OR REPLACE VIEW stored.{identifier(table)} AS\n" + "\nUNION ALL\n".join(selects)


def _rows_of_files(columns: Mapping[str, str], part: FileGroup) -> str:
    """Build a query for the rows of a group of files."""
    selected = (_as_today(name, kind, part.columns.get(name)) for name, kind in columns.items())
    files = _files_of_runs(part.paths, rank_in_path=part.rank_in_path)
    ranks = "" if part.ranks is None else f"\nWHERE rank IN ({', '.join(map(str, part.ranks))})"
    return f"SELECT {', '.join(selected)}, {part.span:d}::INTEGER AS span\nFROM {files}{ranks}"


def _as_today(name: str, kind: str, had: str | None) -> str:
    """Build the SQL of a column for files that have it with type ``had``, or lack it (None)."""
    column = identifier(name)
    if had == kind:
        return column
    return f"{'NULL' if had is None else column}::{kind} AS {column}"


def derived_view(
    table: str,
    columns: Iterable[str],
    paths: Iterable[str],
    macro: str,
    runs: Iterable[str] | None = None,
) -> str:
    """Build a derived table's view, which reads materialized Parquet files and computes the rest.

    Args:
        table: Name of the table.
        columns: Columns of the view.
        paths: Files, each of one run.
        macro: Name of the macro that computes the table, trusted.
        runs: Runs without a file; None: every run.
    """
    selected = ", ".join(map(identifier, columns))
    parts = []
    if kept := list(paths):
        parts.append(f"SELECT {selected}\nFROM {_files_of_runs(kept)}")
    if missing := "NULL" if runs is None else literal_list(runs).removeprefix("[]"):
        parts.append(f"SELECT {selected}\nFROM derived.{macro}({missing})")
    # In a separate schema: in the schema of the stored tables, the macro would read those tables
    # instead of the views over them.
    head = f"CREATE OR REPLACE VIEW derived.{identifier(table)} AS\n"
    return head + "\nUNION ALL\n".join(parts)


def _files_of_runs(paths: Iterable[str], more: str = "", *, rank_in_path: bool = False) -> str:
    """Build the call that reads Parquet files with the run, and maybe the rank, in their path."""
    types = "'run': VARCHAR" + (", 'rank': INTEGER" if rank_in_path else "")
    return (
        f"read_parquet({literal_list(paths)}, hive_partitioning = true, "
        f"hive_types = {{{types}}}{more})"
    )


def answer_view(
    name: str,
    columns: Iterable[str],
    paths: Iterable[str],
    macro: str,
    runs: Iterable[str] = (),
    *,
    order: str | None = None,
) -> str:
    """Build the view of an answer, ordered by run and then by the order within the run.

    One branch computes all runs that are not materialized. The branch is omitted if there are none,
    because planning it takes 30 ms in every query. Filters on the run are pushed down through the
    window that numbers the branch's rows, unless ``order`` is None (not by columns). The other
    arguments are those of :func:`derived_view`.
    """
    selected = ", ".join(map(identifier, columns))
    kept, missing = list(paths), literal_list(runs).removeprefix("[]")
    head = f"CREATE OR REPLACE VIEW {stored_answer(name)} AS\n"
    if kept and not missing:
        return f"{head}SELECT {selected}\nFROM {_files_of_runs(kept)}"
    computed = f"main.{macro}(runs := {missing})" if missing else f"main.{macro}()"
    if not kept:
        return f"{head}SELECT {selected}\nFROM {computed}"
    numbered = f"PARTITION BY run ORDER BY {order}" if order else ""
    return f"""{head}SELECT {selected}
FROM (
    SELECT {selected}, file_row_number AS _place
    FROM {_files_of_runs(kept, ", file_row_number = true")}
    UNION ALL
    SELECT {selected}, row_number() OVER ({numbered}) AS _place
    FROM {computed}
)
ORDER BY run, _place"""  # noqa: S608 - quoted names and paths


def stored_answer(name: str) -> str:
    """Return the name of the view that reads an answer's materialized rows."""
    return f"materialized.{identifier(name)}"


def rows_of_run(macro: str) -> str:
    """Build a query for a macro's rows of ``$run``, without the column run.

    The name of the macro is trusted.
    """
    return f"SELECT * EXCLUDE (run) FROM {macro}(runs := [$run::VARCHAR])"  # noqa: S608 - a trusted name


def rows_but_of_run(relation: str) -> str:
    """Build a query for a relation that has only rows of ``$run``; the relation is trusted."""
    return f"SELECT * FROM {relation} WHERE $run IS NOT NULL"  # noqa: S608 - ours


def has_rows(relation: str) -> str:
    """Build a query that returns whether a relation has rows; the relation is trusted."""
    return f"SELECT EXISTS (FROM {relation})"


def all_rows(relation: str) -> str:
    """Build a query for all rows of a relation; the relation is trusted."""
    return f"FROM {relation}"


def renaming_view(name: str, base: str, columns: Iterable[tuple[str, str]]) -> str:
    """Build a view that renames the columns of another relation.

    Args:
        name: Quoted name of the view, trusted.
        base: Quoted name of the relation, trusted.
        columns: (SQL over the relation's columns, trusted; name of the column, quoted here).
    """
    selected = ", ".join(f"{value} AS {identifier(column)}" for value, column in columns)
    return f"CREATE VIEW {name} AS SELECT {selected} FROM {base}"  # noqa: S608 - quoted names


def comments(kind: str, name: str, text: str, columns: Mapping[str, str]) -> Iterator[str]:
    """Build the statements that comment an object of the catalog and its columns.

    Args:
        kind: Kind of the object: VIEW, MACRO TABLE.
        name: Quoted name, trusted.
        text: Description, quoted here.
        columns: Column ─▶ description, both quoted here.
    """
    yield f"COMMENT ON {kind} {name} IS {literal(text)}"
    for column, doc in columns.items():
        yield f"COMMENT ON COLUMN {name}.{identifier(column)} IS {literal(doc)}"


def create_schema(name: str) -> str:
    """Build the statement that creates a schema; its name is trusted."""
    return f"CREATE SCHEMA {name}"


def call(name: str, arguments: Mapping[str, str]) -> str:
    """Build a call to a table macro.

    Args:
        name: Name of the macro, trusted.
        arguments: Parameter ─▶ SQL of its value, such as the placeholder ``$ranks``; trusted.
    """
    given = ", ".join(f"{parameter} := {value}" for parameter, value in arguments.items())
    return f"FROM {name}({given})"


def table_macro(name: str, parameters: Iterable[str], select: str) -> str:
    """Build the statement that creates a table macro; all arguments are trusted."""
    return f"CREATE OR REPLACE MACRO {name}({', '.join(parameters)}) AS TABLE\n{select}"


def describe(relation: str) -> str:
    """Build the DESCRIBE of a quoted name or a statement; both are trusted."""
    return f"DESCRIBE {relation}"


def view_of(name: str, source: str, *, replaces: bool = True) -> str:
    """Build a view of another relation; both names are trusted or quoted."""
    return f"CREATE {'OR REPLACE ' if replaces else ''}VIEW {name} AS FROM {source}"


def value_of(name: str, arguments: Mapping[str, str]) -> str:
    """Build a query that calls a scalar lib macro; the column has its name; all are trusted."""
    given = ", ".join(f"{parameter} := {value}" for parameter, value in arguments.items())
    return f"SELECT lib.{name}({given}) AS {identifier(name)}"


def create_table(name: str, select: str, kind: str = "") -> str:
    """Build CREATE TABLE AS with a SELECT; ``kind`` may be TEMPORARY; all are trusted."""
    return f"CREATE {kind} TABLE {name} AS\n{select}"


def drop_table(name: str) -> str:
    """Build the statement that drops a table if it exists; the name is trusted."""
    return f"DROP TABLE IF EXISTS {name}"


def replace_view_by_table(name: str, select: str) -> list[str]:
    """Build the statements that replace a view with a table of the same name; both are trusted."""
    return [f"DROP VIEW {name}", create_table(name, select)]


def delete_listed(name: str, key: str, parameter: str) -> str:
    """Build the statement that deletes the rows whose key is in a list parameter; all are trusted."""
    return f"DELETE FROM {name} WHERE list_contains(${parameter}::BIGINT[], {key})"  # noqa: S608


def sort_table(name: str, column: str) -> str:
    """Build the statement that sorts the rows of a table by a column; both are trusted."""
    return f"CREATE OR REPLACE TABLE {name} AS FROM {name} ORDER BY {column}"


SCOPE_TYPES = {"runs": "VARCHAR[]", "ranks": "INTEGER[]"}


def of_scope(name: str, scope: Iterable[str] = ("runs", "ranks")) -> str:
    """Build a query for a relation's rows in ``$runs`` and ``$ranks``; NULL means all.

    Args:
        name: Name of a relation with columns run and rank, trusted.
        scope: Which of the two parameters exist.
    """
    kept = " AND ".join(
        f"(${key}::{SCOPE_TYPES[key]} IS NULL OR "
        f"list_contains(${key}::{SCOPE_TYPES[key]}, x.{key.removesuffix('s')}))"
        for key in scope
    )
    return f"SELECT x.* FROM {name} AS x WHERE {kept or 'true'}"  # noqa: S608 - only names of the library


def attach(path: str, name: str, options: str = "READ_ONLY") -> str:
    """Build the statement that attaches a database; name and options are trusted."""
    return f"ATTACH {literal(path)} AS {name}{options and f' ({options})'}"


def use(name: str) -> str:
    """Build the statement that selects an attached database by its trusted name."""
    return f"USE {name}"


def detach(name: str) -> str:
    """Build the statement that detaches a database; its name is trusted."""
    return f"DETACH {name}"


def insert(name: str, select: str) -> str:
    """Build the statement that inserts the result of a SELECT; both are trusted."""
    return f"INSERT INTO {name}\n{select}"


def copy_to_path(select: str, options: str) -> str:
    """Build the statement that writes the result of a SELECT to ``$path``; both are trusted."""
    return f"COPY (\n{select}\n) TO $path ({options})"


def subquery(select: str) -> str:
    """Build a query for all rows of a SELECT, which is trusted or was parsed as one statement."""
    return f"FROM (\n{select}\n)"


def explain(options: str, select: str) -> str:
    """Build the EXPLAIN of a SELECT; both are trusted."""
    return f"EXPLAIN {options} {select}"


def first_match_macro(
    name: str, rules: Iterable[tuple[str | int | None, str]], *, whole: bool = False
) -> str:
    """Build a macro that returns the result of the first regular expression that matches a string.

    The expressions are constants in the macro, because the engine compiles a constant once but an
    expression from a column or parameter for every row: 25 of 290 ms for a rank of 27,000 events.

    Args:
        name: Name of the macro, trusted.
        rules: Result and regular expression, both quoted here, in order of precedence.
        whole: Whether the expressions match the whole string; otherwise any part, ignoring case.
    """
    test = "regexp_full_match(value, {})" if whole else "regexp_matches(value, {}, 'i')"
    lines = [f"WHEN {test.format(literal(regex))} THEN {literal(to)}" for to, regex in rules]
    return "\n".join([f"CREATE OR REPLACE MACRO {name}(value) AS", "CASE", *lines, "END"])


def lookup_macro(name: str, results: Mapping[str, str], kind: str, otherwise: str) -> str:
    """Build a macro that looks up a string in constant lists, at negligible cost.

    Args:
        name: Name of the macro, trusted.
        results: String ─▶ result, both quoted here. A string with a leading star matches all
            strings that end with the rest of it, after the exact ones.
        kind: Type of the result, trusted.
        otherwise: Result if nothing matches, quoted here.
    """
    whole: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    for text, result in results.items():
        (ends if text.startswith("*") else whole).setdefault(result, []).append(text)
    branches = [
        f"WHEN value IN ({', '.join(map(literal, texts))}) THEN {literal(result)}::{kind}"
        for result, texts in whole.items()
    ]
    branches += [
        f"WHEN suffix(value, {literal(text[1:])}) THEN {literal(result)}::{kind}"
        for result, texts in ends.items()
        for text in texts
    ]
    lines = "\n".join([*branches, f"ELSE {literal(otherwise)}::{kind}"])
    return f"CREATE OR REPLACE MACRO {name}(value) AS\nCASE\n{lines}\nEND"
