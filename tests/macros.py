"""A DuckDB engine that has only a few macros of the library, to test these macros in isolation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import duckdb

from hta_sql.library.objects import load_library


def engine_with(names: Collection[str], *tables: str) -> duckdb.DuckDBPyConnection:
    """Start an engine with macros of sql/lib, without a store.

    Args:
        names: Names of the macros to create.
        tables: Statements that create the tables that the macros read.
    """
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("CREATE SCHEMA lib")
    for table in tables:
        con.execute(table)
    for macro in load_library().macros_in_order:
        if macro.name in names:
            con.execute(macro.text)
    return con


def value_in(con: duckdb.DuckDBPyConnection, call: str, arguments: Sequence[object]) -> object:
    """Evaluate a macro call and return its value."""
    (found,) = con.execute(f"SELECT {call}", list(arguments)).fetchall()[0]
    return found
