"""Runs the statements of an ingest, each of which is parsed once a process.

Parsing is as dear as planning: of a statement of five kilobytes, three milliseconds of six.
"""

from __future__ import annotations

from typing import Any

import duckdb

_MOST = 256
"""Statements that are known at once; an ingest has about a hundred."""

_parsed: dict[str, duckdb.Statement] = {}


def run(
    con: duckdb.DuckDBPyConnection, sql: str, values: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Run one statement with the values of its parameters."""
    statement = _parsed.get(sql)
    if statement is None:
        if len(_parsed) >= _MOST:
            _parsed.clear()
        (statement,) = con.extract_statements(sql)
        _parsed[sql] = statement
    return con.execute(statement, values)
