"""What a query of unknown origin may do: read the store, nothing else.

The engine itself parses the text that will run, and every node of its tree has to be on a list: of
kinds of nodes, of functions that compute, of the store's own relations and macros. Nothing else
decides, so that no comment, quote or nesting hides anything. Behind that the engine is told to
open no file but the store's Parquet, to load no extension and to keep these settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from hta_sql.errors import QueryError, nearest
from hta_sql.library import sqltext
from hta_sql.store.manifest import TABLES

Name = tuple[str, ...]
"""A name with the schema before it, if it was given, in small letters."""

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
_TABLE_FUNCTIONS = {
    *("generate_series", "json_each", "json_tree", "query_table", "range", "repeat", "unnest"),
    *("duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_views"),
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
    SELECT DISTINCT schema_name, function_name, contains(macro_definition, 'query_table(')
    FROM duckdb_functions()
    WHERE database_name = current_database() AND NOT internal
"""
MOST_REPEATED = 100_000
"""Characters or items that a function may make of one value."""

_SIZES = {
    **dict.fromkeys(("repeat", "lpad", "rpad", "list_resize", "array_resize", "bitstring"), 1),
    **dict.fromkeys(("equi_width_bins", "to_base"), 2),
    "bar": 3,
}
"""Function ─▶ place of the argument that says how much it makes: out of the engine's count of memory."""
_SERIES = {"range", "generate_series"}
"""Likewise, of all arguments together; behind FROM they are made row by row."""
_FORMATS = {"format", "printf"}
"""The widths in the text of the first argument say so."""
_EXPLAIN = ("EXPLAIN ( FORMAT JSON )", "EXPLAIN ( ANALYZE )", "EXPLAIN ANALYZE", "EXPLAIN")


def lock(con: duckdb.DuckDBPyConnection, roots: list[str]) -> None:
    """Tell a database instance to open nothing but the Parquet of a store, for good.

    All connections of one process to the same catalog share the instance.

    Args:
        con: A connection of it.
        roots: Spellings of the store's folder.
    """
    ((is_locked,),) = con.execute("SELECT current_setting('lock_configuration')").fetchall()
    if is_locked:  # by another store object of this process
        return
    con.execute("SET allowed_directories = ?", [[f"{root}/{TABLES}" for root in roots]])
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("SET autoload_known_extensions = false")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


class Sandbox:
    """Checks queries before they run, against what a catalog has."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        ((self._database,),) = con.execute("SELECT lower(current_database())").fetchall()
        self._relations = _SYSTEM_VIEWS.union(
            *(_ways_to_write(*row) for row in con.execute(_RELATIONS).fetchall())
        )
        macros = con.execute(_MACROS).fetchall()
        self._macros: set[Name] = set().union(*(_ways_to_write(*row[:2]) for row in macros))
        self._taking_names = {("query_table",)}.union(
            *(_ways_to_write(*row[:2]) for row in macros if row[2])
        )

    def checked(self, con: duckdb.DuckDBPyConnection, query: str) -> str:
        """Return the text to run in place of a query: exactly what was checked.

        Raises:
            QueryError: Several statements, none, or one that could do more than read.
        """
        text = _bare(query)
        try:
            text.encode()
            statements = duckdb.extract_statements(text)
        except (duckdb.Error, UnicodeError) as error:
            raise QueryError(str(error)) from error
        if len(statements) != 1:
            raise QueryError(f"One query at a time: this text has {len(statements)} statements.")
        kind = statements[0].type.name
        if kind == "EXPLAIN":
            return self._checked_explain(con, text)
        if kind == "MULTI":
            raise QueryError(
                "A PIVOT that looks up its columns cannot be checked. Name them: ON x IN ('a', 'b')."
            )
        if kind != "SELECT":
            raise _refused(kind.replace("_", " "))
        self._check_select(con, text)
        return text

    def _checked_explain(self, con: duckdb.DuckDBPyConnection, text: str) -> str:
        """Return an EXPLAIN of what the engine writes down for the tree that was checked.

        EXPLAIN ANALYZE runs what it explains, and the engine gives no tree of all of it.
        """
        head, inner = _split_explain(text)
        self._check_select(con, inner)
        written = _answer(con, "SELECT json_deserialize_sql(json_serialize_sql(?))", inner)
        # In brackets: a query that begins with one would else be read as the options of EXPLAIN.
        wrapped = sqltext.subquery(written)
        self._check_select(con, wrapped)
        return f"{head} {wrapped}"

    def _check_select(self, con: duckdb.DuckDBPyConnection, text: str) -> None:
        """Hold each node of the engine's tree of a text against the lists."""
        try:
            tree = json.loads(_answer(con, "SELECT json_serialize_sql(?)", text))
        except RecursionError as error:
            raise QueryError("The query is nested too deeply to be checked.") from error
        if tree["error"] or len(tree["statements"]) != 1:
            raise QueryError(f"The query cannot be checked: {tree.get('error_message')}")
        nodes = list(_nodes(tree["statements"]))
        named = {str(key).lower() for node in nodes for key in _with_names(node)}
        # Outside of its WITH, a name with a dot is a file's.
        known = self._relations.union((name,) for name in named if "." not in name)
        known.update(("recurring", name) for name in named)
        called = [node["function"] for node in nodes if node.get("type") == "TABLE_FUNCTION"]
        for function in called:
            self._check_table_function(function, known)
        as_tables = {id(function) for function in called}
        for node in nodes:
            if id(node) not in as_tables:
                self._check_node(node, known)

    def _check_node(self, node: dict[str, Any], known: set[Name]) -> None:
        kind = node.get("type")
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                raise _refused(str(node["class"]))
            if node["class"] in ("FUNCTION", "WINDOW"):
                name = self._name(node)
                if name not in self._macros and name[-1] not in reading_functions():
                    raise _refused(
                        f"the function {name[-1]}", nearest(name[-1], reading_functions())
                    )
                if name not in self._macros:
                    _check_size(name[-1], node)
        elif isinstance(kind, str) and kind not in _NODES:
            raise _refused(kind.removesuffix("_NODE").removesuffix("_QUERY"))
        elif kind == "BASE_TABLE" or node.get("show_type") == "SHOW":
            _check_relation(self._name(node), known)

    def _check_table_function(self, function: dict[str, Any], known: set[Name]) -> None:
        name = self._name(function)
        if name not in self._macros and name[-1] not in _TABLE_FUNCTIONS:
            candidates = {".".join(macro) for macro in self._macros} | _TABLE_FUNCTIONS
            raise _refused(f"the function {name[-1]}", nearest(".".join(name), candidates))
        if name in self._taking_names:
            for argument in function["arguments"]:
                for text in _texts(argument["expression"]):
                    _check_relation(tuple(text.lower().split(".")), known)

    def _name(self, node: dict[str, Any]) -> Name:
        """Read the name of a relation or function; this database need not be named."""
        path = [str(part).lower() for part in node["qualified_name"]["path"]]
        return tuple(path[1:] if len(path) == 3 and path[0] == self._database else path)


@cache
def reading_functions() -> frozenset[str]:
    """Read the list of functions that compute, and do nothing else."""
    lines = Path(__file__).with_name("reading_functions.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("# ") for word in line.split())


def _bare(query: str) -> str:
    """Leave out what duckdb's Python layer leaves out of a text before it runs it."""
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
    """Split an EXPLAIN into its own words and what it explains; comments between them go."""
    encoded = text.encode()
    marks = [*duckdb.tokenize(text), (len(encoded), None)]
    words = [
        (at, encoded[at:end].decode().strip().upper())
        for (at, kind), (end, _) in pairwise(marks)
        if kind is not duckdb.token_type.comment
    ]
    for head in _EXPLAIN:
        length = len(head.split())
        if [word for _, word in words[:length]] == head.split() and len(words) > length:
            return head, encoded[words[length][0] :].decode()
    raise _refused("this EXPLAIN")


def _ways_to_write(schema: str, name: str) -> set[Name]:
    """List how an object of the store may be named; the schema ``main`` need not be."""
    written = (schema.lower(), name.lower())
    return {written, written[1:]} if schema == "main" else {written}


def _with_names(node: dict[str, Any]) -> Iterator[str]:
    if "cte_map" in node:
        yield from (entry["key"] for entry in node["cte_map"]["map"])


def _texts(argument: dict[str, Any]) -> Iterator[str]:
    """Yield the names of relations in an argument: a constant text, or a list of such."""
    if argument["class"] == "CONSTANT":
        if argument["literal"]["kind"] == "STRING":
            yield argument["literal"]["text"]
    elif argument["class"] == "FUNCTION" and argument["function_name"] == "list_value":
        for item in argument["arguments"]:
            yield from _texts(item["expression"])
    else:
        raise _refused("a relation whose name is computed")


def _check_relation(name: Name, known: set[Name]) -> None:
    if name not in known:
        written = ".".join(name)
        candidates = [".".join(other) for other in known]
        raise QueryError(
            f"The store has no table or analysis {written!r}.{nearest(written, candidates)}"
        )


def _check_size(function: str, node: dict[str, Any]) -> None:
    """Refuse what makes gigabytes out of a number: such memory the engine neither counts nor limits."""
    arguments = [item["expression"] for item in node.get("arguments", ())]
    if function in _SIZES and len(arguments) > _SIZES[function]:
        sizes = [_size(arguments[_SIZES[function]])]
        says = f"of at most {MOST_REPEATED:,}, written as a number or as least(…, number)"
    elif function in _SERIES:
        values = [_size(argument) for argument in arguments]
        known = [value for value in values if value is not None]
        span = (min(0, *known) - max(0, *known)) if len(known) > 1 else -max([*map(abs, known), 0])
        sizes = [None if len(known) < len(values) else -span]
        says = f"of at most {MOST_REPEATED:,} numbers, written as such; or put it behind FROM"
    elif function in _FORMATS and arguments:
        literal = arguments[0].get("literal", {})
        text = literal.get("text") if literal.get("kind") == "STRING" else None
        widths = re.findall(r"\d+", text or "")
        is_open = text is None or "*" in text or re.search(r"\{[^{}]*\{", text)
        sizes = [None if is_open else max(map(int, widths), default=0)]
        says = f"with a text whose widths are numbers of at most {MOST_REPEATED:,}"
    else:
        return
    if any(size is None or abs(size) > MOST_REPEATED for size in sizes):
        raise QueryError(f"{function}() is allowed here {says}.")


def _size(argument: dict[str, Any]) -> int | None:
    """Read a whole number, or the least of some of which one is such; None: it is not known."""
    if argument["class"] == "CAST":
        return _size(argument["child"])
    if argument["class"] == "CONSTANT" and argument["literal"]["kind"] == "INTEGER":
        return int(argument["literal"]["text"])
    if argument["class"] == "FUNCTION" and argument["function_name"].lower() == "least":
        found = [_size(item["expression"]) for item in argument["arguments"]]
        return min((size for size in found if size is not None), default=None)
    return None


def _refused(what: str, hint: str = "") -> QueryError:
    return QueryError(f"Only queries that read are allowed here, not {what}.{hint}")


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
