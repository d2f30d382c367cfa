"""Sandbox for untrusted queries: the engine's own lock, and one statement that only reads.

The engine opens nothing but the store's Parquet files and its catalog, loads no extensions, and
locks its settings. COPY could still write next to the Parquet files, so only a SELECT runs. The
engine runs it as a subquery, because there it refuses WITH queries that write (``WITH a AS (COPY
…)``), whose statement it calls a SELECT.
"""

from __future__ import annotations

import re

import duckdb

from hta_sql.errors import QueryError
from hta_sql.library import engine_settings, sqltext
from hta_sql.library.sql_files import query_sql
from hta_sql.store.disk.manifest import TABLES

_COMMENT = r"(?>\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*+"
_EXPLAIN = re.compile(
    rf"{_COMMENT}EXPLAIN\b{_COMMENT}(ANALYZE\b)?{_COMMENT}(\((?:\s*(?:ANALYZE|FORMAT\s+\w+)\s*,?)+\))?",
    re.IGNORECASE | re.DOTALL,
)
"""The head of an EXPLAIN, with ANALYZE and its options."""


def lock(con: duckdb.DuckDBPyConnection, roots: list[str]) -> None:
    """Restrict a database instance to the Parquet files of a store, irreversibly.

    All connections of one process to the same catalog share the instance.

    Args:
        con: A connection to the instance.
        roots: Spellings of the store's folder.
    """
    ((is_locked,),) = con.execute(query_sql("engine", "is_locked")).fetchall()
    if not is_locked:  # by another store object in this process
        engine_settings.lock(con, [f"{root}/{TABLES}" for root in roots])


def reading(query: str) -> str:
    """Return the text that runs a query if it only reads.

    Raises:
        QueryError: The query is not exactly one SELECT (WITH, FROM, VALUES, SHOW, DESCRIBE,
            SUMMARIZE), or EXPLAIN of one.
    """
    kind, text = _statement(query)
    options = None
    if kind == "EXPLAIN" and (found := _EXPLAIN.match(text)):
        # EXPLAIN ANALYZE runs its query, so the query is checked as well.
        options = f"{found[1] or ''} {found[2] or ''}"
        kind, text = _statement(text[found.end() :])
    if kind == "MULTI":
        raise QueryError(
            "A PIVOT without explicit columns is two statements. List them: ON x IN ('a', 'b')."
        )
    if kind != "SELECT":
        raise QueryError(f"Only read-only queries are allowed here, not {kind.replace('_', ' ')}.")
    select = sqltext.subquery(text)
    return select if options is None else sqltext.explain(options, select)


def _statement(text: str) -> tuple[str, str]:
    """Return the kind of a single statement, and its text without final semicolons."""
    try:
        written = text.encode()
        statements = duckdb.extract_statements(text)
    except (duckdb.Error, UnicodeError) as error:
        raise QueryError(str(error)) from error
    if len(statements) != 1:
        raise QueryError(f"Pass a single statement: this query has {len(statements)}.")
    for start, kind in reversed(duckdb.tokenize(text)):
        if written[start : start + 1] == b";":
            written = written[:start]
        elif kind is not duckdb.token_type.comment:
            break
    return str(statements[0].type.name), written.decode().lstrip("; \n")
