"""An engine with some macros of the library, for tests of these alone."""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from hta_sql.library.objects import load_library


def engine_with(names: Collection[str]) -> duckdb.DuckDBPyConnection:
    """Start an engine that knows macros of sql/lib, without a store."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute("CREATE SCHEMA lib")
    for macro in load_library().macros_in_order:
        if macro.name in names:
            con.execute(macro.text)
    return con
