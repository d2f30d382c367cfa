"""Reads the tables and functions that a file's statement uses from the engine's parse tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library.objects import SqlObject
from hta_sql.library.rules.products import overflowing_products
from hta_sql.library.sql_files import query_sql


@dataclass(frozen=True)
class Statement:
    """The statement of a macro or view.

    Attributes:
        ctes: Names of the CTEs, in order.
        tables: Tables and views that the statement reads, with their schema if given; no CTEs.
        functions: Table functions and macros that the statement calls, with their schema if given.
        scalars: Names of the scalar functions that the statement calls.
        texts: String literals of the statement.
        products: Descriptions of products of times that can overflow.
        is_ordered: Whether the statement ends with an ORDER BY at the top level.
    """

    ctes: tuple[str, ...]
    tables: frozenset[str]
    functions: frozenset[str]
    scalars: frozenset[str]
    texts: frozenset[str]
    products: frozenset[str]
    is_ordered: bool


def count_statements(con: duckdb.DuckDBPyConnection, text: str) -> int:
    """Count the statements of a file.

    Raises:
        LibraryError: The text is not SQL.
    """
    try:
        return len(con.extract_statements(text))
    except duckdb.Error as error:
        raise LibraryError(_first_line(error)) from error


def read_statement(con: duckdb.DuckDBPyConnection, about: SqlObject) -> Statement:
    """Parse the statement after ``AS TABLE`` or ``AS``, or the expression of a scalar macro.

    Raises:
        LibraryError: The engine's parser rejects it.
    """
    marker = ") AS TABLE\n" if ") AS TABLE\n" in about.text else " AS\n"
    body = about.text.partition(marker)[2]
    values = {"body": body, "is_expression": about.is_scalar}
    ((tree,),) = con.execute(query_sql("engine", "syntax_tree"), values).fetchall()
    parsed = json.loads(tree)
    if parsed["error"]:
        raise LibraryError(parsed["error_message"])
    top = parsed["statements"][0]["node"]
    nodes = list(_nodes(top))
    ctes = [entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", ())]
    read = {
        _qualified(node["schema_name"], node["table_name"])
        for node in nodes
        if node.get("type") == "BASE_TABLE"
    }
    calls = [node["function"] for node in nodes if node.get("type") == "TABLE_FUNCTION"]
    literals = (node.get("literal") for node in nodes if node.get("class") == "CONSTANT")
    return Statement(
        ctes=tuple(ctes),
        tables=frozenset(read - set(ctes)),
        functions=frozenset(_qualified(call["schema"], call["function_name"]) for call in calls),
        scalars=frozenset(
            node["function_name"].lower() for node in nodes if node.get("class") == "FUNCTION"
        ),
        texts=frozenset(x["text"] for x in literals if x and x["kind"] == "STRING"),
        products=frozenset(overflowing_products(nodes)),
        is_ordered=any(modifier["type"] == "ORDER_MODIFIER" for modifier in top["modifiers"]),
    )


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _qualified(schema: str, name: str) -> str:
    return f"{schema}.{name}" if schema else name


def _first_line(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]
