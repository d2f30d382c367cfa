"""Sandbox for untrusted queries: they may only read the store.

The engine parses the query, and every node of its syntax tree must be on an allowlist of node
kinds, functions, and the store's relations and macros. The check uses only this tree, so comments,
quotes or nesting cannot hide anything. Limits on the text and the tree prevent stack overflows and
unbounded copying in the engine. As a second barrier, the engine is configured to open only the
store's Parquet files, load no extensions, and lock its settings.
"""

from __future__ import annotations

import json

import duckdb

from hta_sql.errors import QueryError, nearest
from hta_sql.library import sqltext
from hta_sql.store.disk.manifest import TABLES
from hta_sql.store.query.sandbox_functions import (
    TABLE_FUNCTIONS,
    check_function,
    check_type,
    refused,
)
from hta_sql.store.query.sandbox_macros import Definition, Macros, Name
from hta_sql.store.query.sandbox_scopes import Scope, small
from hta_sql.store.query.sandbox_text import check_text, tokens_of
from hta_sql.store.query.sandbox_tree import Node, TreeWalk

_NODES = {
    *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"),
    *("DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"),
    *("ASCENDING", "DESCENDING", "ORDER_DEFAULT"),
    *("BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SHOW_REF", "SUBQUERY"),
    "TABLE_FUNCTION",
}
_EXPRESSIONS = {
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT"),
    *("FUNCTION", "LAMBDA", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY"),
    *("TYPE", "WINDOW"),
}
_SYSTEM_VIEWS = {
    *(("duckdb_columns",), ("duckdb_tables",), ("duckdb_views",)),
    *(("information_schema", "columns"), ("information_schema", "tables")),
}
_RELATIONS = """
    SELECT schema_name, view_name FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal
    UNION ALL
    SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database()
"""
_MACROS = """
    SELECT schema_name, function_name, parameters, macro_definition, NOT internal
    FROM duckdb_functions()
    WHERE function_type IN ('macro', 'table_macro')
      AND (internal OR database_name = current_database())
"""
_EXPLAIN = ("EXPLAIN ( FORMAT JSON )", "EXPLAIN ( ANALYZE )", "EXPLAIN ANALYZE", "EXPLAIN")


def lock(con: duckdb.DuckDBPyConnection, roots: list[str]) -> None:
    """Restrict a database instance to the Parquet files of a store, irreversibly.

    All connections of one process to the same catalog share the instance.

    Args:
        con: A connection to the instance.
        roots: Spellings of the store's folder.
    """
    ((is_locked,),) = con.execute("SELECT current_setting('lock_configuration')").fetchall()
    if is_locked:  # by another store object in this process
        return
    con.execute("SET allowed_directories = ?", [[f"{root}/{TABLES}" for root in roots]])
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("SET autoload_known_extensions = false")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


class Sandbox:
    """Checks queries against the allowlists and the objects of a catalog before they run."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        ((self._database,),) = con.execute("SELECT lower(current_database())").fetchall()
        self._relations = set[Name]().union(
            *(_ways_to_write(*row) for row in con.execute(_RELATIONS).fetchall())
        )
        self._own: set[Name] = set()
        definitions: dict[Name, list[Definition]] = {}
        for schema, function, parameters, definition, is_own in con.execute(_MACROS).fetchall():
            overload = ([small(parameter) for parameter in parameters], str(definition))
            definitions.setdefault((small(schema), small(function)), []).append(overload)
            if is_own:
                self._own |= _ways_to_write(schema, function)
        self._macros = Macros(definitions)
        self._walk = TreeWalk(self)

    def validated(self, con: duckdb.DuckDBPyConnection, query: str) -> str:
        """Check a query, and return the text to run, which is exactly the text that was checked.

        Raises:
            QueryError: The query is not exactly one statement, or does more than read.
        """
        text = _bare(query)
        check_text(text)
        try:
            statements = duckdb.extract_statements(text)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        if len(statements) != 1:
            raise QueryError(f"Pass a single statement: this query has {len(statements)}.")
        kind = statements[0].type.name
        if kind == "EXPLAIN":
            return self._checked_explain(con, text)
        if kind == "MULTI":
            raise QueryError(
                "A PIVOT without explicit columns cannot be checked. List them: ON x IN ('a', 'b')."
            )
        if kind != "SELECT":
            raise refused(kind.replace("_", " "))
        self._check_select(con, text)
        return text

    def _checked_explain(self, con: duckdb.DuckDBPyConnection, text: str) -> str:
        """Return an EXPLAIN of the SQL that the engine generates from the checked tree.

        EXPLAIN ANALYZE runs the query, so the query must be checked too, but the engine returns no
        syntax tree for an EXPLAIN statement.
        """
        head, inner = _split_explain(text)
        self._check_select(con, inner)
        written = _answer(con, "SELECT json_deserialize_sql(json_serialize_sql(?))", inner)
        # Without parentheses, a query that starts with "(" is parsed as options of EXPLAIN.
        wrapped = sqltext.subquery(written)
        self._check_select(con, wrapped)
        return f"{head} {wrapped}"

    def _check_select(self, con: duckdb.DuckDBPyConnection, text: str) -> None:
        """Check every node of the syntax tree that the engine returns for a query."""
        try:
            tree = json.loads(_answer(con, "SELECT json_serialize_sql(?)", text))
            if tree["error"] or len(tree["statements"]) != 1:
                raise QueryError(f"The query cannot be checked: {tree.get('error_message')}")
            self._walk.check(tree["statements"])
        except RecursionError as error:
            raise QueryError("The query is nested too deeply to be checked.") from error

    def check_node(self, node: Node, scope: Scope) -> None:
        """Check a node other than a table function.

        Raises:
            QueryError: The node is not on the allowlists.
        """
        kind = node.get("type")
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                raise refused(str(node["class"]))
            if node["class"] == "TYPE":
                check_type(node)
            elif node["class"] in ("FUNCTION", "WINDOW"):
                name = self._name(node)
                if name in self._own:
                    self._check_names(name, node, scope)
                else:
                    check_function(name[-1], node)
        elif isinstance(kind, str) and kind not in _NODES:
            raise refused(kind.removesuffix("_NODE").removesuffix("_QUERY"))
        elif kind == "BASE_TABLE":
            self._check_relation(self._name(node), scope)
        elif node.get("show_type") == "SHOW":
            # SHOW only resolves relations of the catalog, even if a WITH query has the same name.
            self._check_relation(self._name(node), Scope())

    def check_table_function(self, function: Node, scope: Scope) -> None:
        """Check a table function.

        Raises:
            QueryError: The function, or a relation whose name is passed to it, is not on the
                allowlists.
        """
        name = self._name(function)
        if name not in self._own and name[-1] not in TABLE_FUNCTIONS:
            candidates = {".".join(macro) for macro in self._own} | TABLE_FUNCTIONS
            raise refused(f"the function {name[-1]}", nearest(".".join(name), candidates))
        self._check_names(name, function, scope)

    def repeats(self, function: Node) -> int:
        """Return the maximum number of times a macro repeats an argument; 1 for other functions."""
        return self._macros.repeats(self._name(function)[-1])

    def _check_names(self, name: Name, function: Node, scope: Scope) -> None:
        """Check the relations whose names are passed to a function as strings."""
        for position, argument in enumerate(function["arguments"]):
            key = small(argument.get("name") or "") or position
            texts = _texts(argument["expression"])
            if texts != [] and key in self._macros.taking_names(name[-1]):
                if texts is None:
                    raise refused("a relation whose name is computed")
                for text in texts:
                    self._check_relation(tuple(small(text).split(".")), scope)

    def _check_relation(self, name: Name, scope: Scope) -> None:
        if name not in self._relations and name not in _SYSTEM_VIEWS and not scope.sees(name):
            written = ".".join(name)
            candidates = [".".join(other) for other in [*self._relations, *_SYSTEM_VIEWS]]
            raise QueryError(
                f"The store has no table or analysis {written!r}."
                f"{nearest(written, [*candidates, *scope.queries])}"
            )

    def _name(self, node: Node) -> Name:
        """Return the name of a relation or function, without the name of the catalog's database."""
        path = [small(str(part)) for part in node["qualified_name"]["path"]]
        return tuple(path[1:] if len(path) == 3 and path[0] == self._database else path)


def _bare(query: str) -> str:
    """Strip white space and trailing semicolons, as DuckDB's Python API does before running."""
    text = query.strip()
    while text.endswith(";"):
        text = text[:-1].rstrip()
    return text


def _answer(con: duckdb.DuckDBPyConnection, question: str, text: str) -> str:
    try:
        ((answer,),) = con.execute(question, [text]).fetchall()
    except duckdb.Error as error:
        raise QueryError(f"The query cannot be checked: {error}") from error
    return str(answer)


def _split_explain(text: str) -> tuple[str, str]:
    """Split an EXPLAIN into its keywords and the explained query, dropping comments in between."""
    tokens = tokens_of(text)
    for head in _EXPLAIN:
        words = head.split()
        if [word for _, word, _ in tokens[: len(words)]] == words and len(tokens) > len(words):
            return head, text.encode()[tokens[len(words)][0] :].decode()
    raise refused("this EXPLAIN")


def _ways_to_write(schema: str, name: str) -> set[Name]:
    """Return the ways to write the name of an object; the schema ``main`` is optional."""
    written = (small(schema), small(name))
    return {written, written[1:]} if schema == "main" else {written}


def _texts(argument: Node) -> list[str] | None:
    """Return the strings in a constant or list argument; None if the argument is computed."""
    if argument["class"] == "CONSTANT":
        kind = argument["literal"]["kind"]
        if kind == "STRING":
            return [argument["literal"]["text"]]
        return [] if kind in ("NULL_LITERAL", "BOOLEAN", "INTEGER") else None
    if argument["class"] != "FUNCTION" or argument["function_name"] != "list_value":
        return None
    found: list[str] = []
    for item in argument["arguments"]:
        texts = _texts(item["expression"])
        if texts is None:
            return None
        found += texts
    return found
