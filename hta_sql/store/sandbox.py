"""What a query of unknown origin may do: read the store, nothing else.

The engine is told to open no file outside of the store's folder, to load no extension and to keep
these settings. It would still write inside of that folder (COPY, also inside of a WITH), so the
parse tree of each query is held against a list of what reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from hta_sql.errors import QueryError

_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_READING_FUNCTIONS = re.compile(
    r"(range|generate_series|unnest|repeat|query_table|glob|json_each|json_tree|summary"
    r"|(read|parquet|duckdb|pragma)_\w+|show\w*)$",
    re.IGNORECASE,
)
"""Table functions that neither write, nor run a text as SQL, nor take a pointer."""
_MACROS = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro'"
_EXPLAIN = re.compile(r"EXPLAIN\b\s*(ANALYZE\b|ANALYSE\b|\([^()]*\))?", re.IGNORECASE)


class Sandbox:
    """Locks a connection down and checks its queries.

    The settings belong to the database instance, which all connections of one process to the same
    catalog share; they cannot be undone.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, folders: list[str]) -> None:
        self._con = con
        con.execute("SET allowed_directories = ?", [folders])
        con.execute("SET autoinstall_known_extensions = false")
        con.execute("SET autoload_known_extensions = false")
        con.execute("SET python_enable_replacements = false")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        self._macros = {str(name).lower() for (name,) in con.execute(_MACROS).fetchall()}

    def check(self, query: str) -> None:
        """Refuse what is not one statement that reads.

        Raises:
            QueryError: Several statements, none, or one that could do more than read.
        """
        try:
            statements = duckdb.extract_statements(query)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        if len(statements) != 1:
            raise QueryError(f"One query at a time: this text has {len(statements)} statements.")
        kind, text = statements[0].type.name, statements[0].query
        if kind == "EXPLAIN":
            # EXPLAIN ANALYZE runs what it explains.
            self.check(_EXPLAIN.sub("", text, count=1))
        elif kind == "MULTI":
            raise QueryError(
                "A PIVOT that looks up its columns cannot be checked. Name them: ON x IN ('a', 'b')."
            )
        elif kind != "SELECT":
            raise _refused(kind.replace("_", " "))
        else:
            for node in _nodes(self._tree(text)):
                self._check_node(node)

    def _tree(self, query: str) -> Any:
        """Let the engine itself say how it reads the query."""
        ((text,),) = self._con.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
        try:
            tree = json.loads(text)
        except RecursionError as error:
            raise QueryError("The query is nested too deeply to be checked.") from error
        if tree["error"]:
            raise QueryError(f"The query cannot be checked: {tree.get('error_message')}")
        return tree["statements"]

    def _check_node(self, node: dict[str, Any]) -> None:
        kind = str(node.get("type"))
        if kind.endswith("_NODE") and kind not in _READING_NODES:
            raise _refused(kind.removesuffix("_NODE").removesuffix("_QUERY"))
        if kind == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"])
            if name.lower() not in self._macros and not _READING_FUNCTIONS.match(name):
                raise _refused(f"the function {name}")


def _refused(what: str) -> QueryError:
    return QueryError(f"Only queries that read are allowed here, not {what}.")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Walk through all objects of a parse tree."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
