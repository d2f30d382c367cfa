"""Checks that documented parameters, columns and types agree with the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from hta_sql.library import sqltext
from hta_sql.library.creation import create_empty_tables, refused_line
from hta_sql.library.declared import Column, Parameter
from hta_sql.library.engine_settings import ignore_python_variables
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.rules.problem import Found, Problem, column_line, located
from hta_sql.library.rules.text import columns_of
from hta_sql.library.sql_files import query_sql

SPANS = "validation_spans"
"""Relation passed to lib macros as the value of a relation parameter."""

RELATIONS = ("spans", "ops", "rows", "items")
"""Name endings of relation parameters: intervals, operations, rows, items of collectives."""

_REFUSED_TO_RUN = "the engine cannot run the analysis"

_COLUMNS_OF_LIB = re.compile(r"with the columns of lib\.(\w+)")
"""Phrase that documents that a parameter takes a relation with the columns of another macro."""


def engine_problems(library: Library, abouts: Iterable[SqlObject]) -> Iterator[Problem]:
    """Yield the differences between documentation and engine.

    Files that depend on a rejected one are skipped, so that one mistake gives one message.

    Args:
        library: The library that the files belong to.
        abouts: The files to check, in an order in which they can be created.
    """
    looked_at = list(abouts)
    listing = _listing(library)
    with duckdb.connect(":memory:") as con:
        ignore_python_variables(con)
        # Only the dependencies: the files are created one by one below, so that an error names its
        # file.
        create_empty_tables(con, library)
        for about in _below(library, looked_at):
            con.execute(about.text)
        _create_spans(con, library)
        refused: set[Path] = set()
        for about in looked_at:
            if refused and not refused.isdisjoint(o.path for o in library.stands_on(about)):
                continue
            try:
                con.execute(about.text)
            except duckdb.Error as error:
                refused.add(about.path)
                said = str(error).partition("\n")[0]
                yield Problem(
                    about.path,
                    refused_line(about, error),
                    f"the engine rejects the statement: {said}",
                )
                continue
            listed = _listed(about, listing)
            schema, relation = _schema_and_relation(library, about)
            found = (*parameters(con, about, schema), *columns(con, listed, relation))
            if any(text.startswith(_REFUSED_TO_RUN) for _, text in found):
                refused.add(about.path)
            yield from (located(about, problem) for problem in found)


def _listing(library: Library) -> dict[str, tuple[Column, ...]]:
    """Return the documented columns by object, to which other macros may refer."""
    files = (*library.macros, *library.tables, *library.analyses)
    return {about.name: about.columns for about in files}


def _listed(about: SqlObject, listing: dict[str, tuple[Column, ...]]) -> tuple[Column, ...]:
    return about.columns or listing.get(columns_of(about) or "", ())


def _below(library: Library, abouts: Iterable[SqlObject]) -> Iterator[SqlObject]:
    """Return the dependencies of files, without the files themselves, in creation order."""
    files = list(abouts)
    known = {about.path for about in files}
    used = {one.path for about in files for one in library.stands_on(about)} - known
    return (one for one in (*library.tables, *library.macros_in_order) if one.path in used)


def _schema_and_relation(library: Library, about: SqlObject) -> tuple[str, str]:
    """Return the schema in which an object is created, and the SQL that reads its rows."""
    if about in library.tables:
        return "main", sqltext.identifier(about.name)
    if about in library.analyses:
        return "main", sqltext.call(about.name, {})
    values = {parameter.name: _value(parameter) for parameter in about.parameters}
    if about in library.derived:
        return "derived", sqltext.call(f"derived.{about.name}", values)
    if about.is_scalar:
        return "lib", sqltext.value_of(about.name, values)
    return "lib", sqltext.call(f"lib.{about.name}", values)


def _value(parameter: Parameter) -> str:
    """Return a relation for a relation parameter, otherwise NULL, which fits every type."""
    if made_by := _COLUMNS_OF_LIB.search(parameter.doc):
        return sqltext.literal(f"{SPANS}_{made_by.group(1)}")
    return sqltext.literal(SPANS) if parameter.name.endswith(RELATIONS) else "NULL"


def _create_spans(con: duckdb.DuckDBPyConnection, library: Library) -> None:
    columns = {
        "lane": "INTEGER",
        "class": "VARCHAR",
        "layer": "INTEGER",
        "ts": "BIGINT",
        "dur": "BIGINT",
    }
    columns |= {"run": "VARCHAR", "rank": "INTEGER", "event_id": "BIGINT"}
    columns |= {"span": "INTEGER", "id": "BIGINT", "op_count": "BIGINT", "sum_ns": "BIGINT"}
    columns |= dict.fromkeys(("side", "category", "name", "shapes"), "VARCHAR")
    columns |= dict.fromkeys(("ref_rank", "excess_ns", "lane_id", "position", "ordinal"), "BIGINT")
    columns |= dict.fromkeys(("number", "nth", "end_ts", "gap", "n", "shape_id", "seq"), "BIGINT")
    columns |= {"count_1": "BIGINT", "count_2": "BIGINT", "step": "BIGINT", "step_ns": "DOUBLE"}
    columns |= {"cause": "VARCHAR", "call": "VARCHAR", "idle_ns": "BIGINT"}
    columns |= {"is_straggler": "BOOLEAN", "verdict": "VARCHAR", "set_id": "VARCHAR"}
    columns |= {"stage": "INTEGER", "late_blocks": "BIGINT[]"}
    columns |= dict.fromkeys(("block", "item_id", "block_ns", "own_ns", "wait_ns"), "BIGINT")
    columns |= dict.fromkeys(("late_ns", "peer_count"), "BIGINT")
    columns |= dict.fromkeys(("input_shapes", "input_types", "concrete_inputs"), "VARCHAR")
    columns |= dict.fromkeys(
        ("call_id", "parent_id", "op_id", "module_id", "annotation_id", "bwd_op_id"), "BIGINT"
    )
    columns |= dict.fromkeys(("is_usable", "is_late", "is_owner"), "BOOLEAN")
    columns |= dict.fromkeys(("path", "parts"), "VARCHAR[]")
    con.execute(sqltext.values_view(SPANS, columns, []))
    listing = _listing(library)
    for macro in library.macros:
        listed = _listed(macro, listing)
        if listed and all(column.type != "ANY" for column in listed):
            types = {column.name: column.type for column in listed}
            con.execute(sqltext.values_view(f"{SPANS}_{macro.name}", types, []))


def parameters(con: duckdb.DuckDBPyConnection, about: SqlObject, schema: str) -> Iterator[Found]:
    """Compare names and types of the parameters with the engine's."""
    rows = con.execute(
        query_sql("engine", "macro_parameters"),
        {"schema": schema, "name": about.name},
    ).fetchall()
    documented = [(p.name, p.type) for p in about.parameters]
    for names, types in rows:
        actual = list(zip(names, types, strict=True))
        if actual != documented:
            yield (
                "^CREATE",
                f"the engine reports the parameters {_list(actual)}, but the file declares {_list(documented)}",
            )


def columns(
    con: duckdb.DuckDBPyConnection, listed: tuple[Column, ...], relation: str
) -> Iterator[Found]:
    """Compare names, order and types of the columns with the engine's."""
    try:
        described = con.sql(sqltext.describe(relation)).fetchall()
    except duckdb.Error as error:
        yield "", f"{_REFUSED_TO_RUN}: {str(error).partition(chr(10))[0]}"
        return
    actual = {row[0]: row[1] for row in described}
    documented = {column.name: column for column in listed}
    for name in (name for name in actual if name not in documented):
        yield r"^\) AS", f"it returns {name} {actual[name]}, which it does not document"
    for name in (name for name in documented if name not in actual):
        yield column_line(name), f"it documents {name}, which it does not return"
    if actual.keys() != documented.keys():
        return
    if list(actual) != list(documented):
        yield (
            r"^\) AS",
            f"it returns the columns in the order {', '.join(actual)}; document them in this order",
        )
    for column in listed:
        if not _fits(column, actual[column.name]):
            yield (
                column_line(column.name),
                f"column {column.name} is {actual[column.name]}, but documented as {column.type}",
            )


def _fits(column: Column, kind: str) -> bool:
    """Return whether a type matches: ANY matches all types, STRUCT matches any fields."""
    return column.type in ("ANY", kind) or kind.startswith(f"{column.type}(")


def _list(pairs: list[tuple[str, str | None]]) -> str:
    return ", ".join(f"{name} {kind}" if kind else name for name, kind in pairs) or "nothing"
