"""Writes a store to one DuckDB file: its data as tables, with every view and macro."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from hta_sql.errors import QueryError, StoreError
from hta_sql.library import sqltext
from hta_sql.library.creation import SCOPE_TABLES
from hta_sql.library.sql_files import stored_columns
from hta_sql.store.catalog.template import CONFIG, template
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.writing import made_folder, replacing

_SOURCE = "source"
"""Name of the attached catalog of the store while it is copied."""


def write_portable(
    store: TraceStore, path: Path, runs: Sequence[str] = (), ranks: Sequence[int] = ()
) -> dict[str, int]:
    """Copy a store into one file that DuckDB 1.4 or later can open.

    Args:
        store: The opened store.
        path: Path of the file, which replaces an existing file when it is complete.
        runs: Runs to copy; empty: all.
        ranks: Ranks to copy; empty: all.

    Returns:
        Table ─▶ number of rows.

    Raises:
        StoreError: The path is a folder.
        RankError: A requested run or rank is not in the store.
        QueryError: The engine failed.
    """
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a folder; duckdb is written to a single file.")
    scope: dict[str, Any] = {"runs": list(runs) or None, "ranks": list(ranks) or None}
    store.check_scope(scope)
    with made_folder(path.parent), replacing(path) as partial:
        shutil.copyfile(template(store.library), partial)
        try:
            with duckdb.connect(str(partial), config=CONFIG) as con:
                return _fill(con, store, scope)
        except duckdb.Error as error:
            raise QueryError(f"Could not write {str(path)!r}: {error}") from error
        finally:
            Path(f"{partial}.wal").unlink(missing_ok=True)


def _fill(
    con: duckdb.DuckDBPyConnection, store: TraceStore, scope: dict[str, Any]
) -> dict[str, int]:
    store.attach_to(con, _SOURCE)
    counts = {}
    for name, columns in (stored_columns() | SCOPE_TABLES).items():
        table = f"stored.{sqltext.identifier(name)}"
        asked = {key: value for key, value in scope.items() if key.removesuffix("s") in columns}
        rows = sqltext.of_scope(f"{_SOURCE}.{table}", asked)
        drop, create = sqltext.replace_view_by_table(table, rows)
        con.execute(drop)
        ((counts[name],),) = con.execute(create, asked).fetchall()
    con.execute(sqltext.detach(_SOURCE))
    for name in store.library.derived_columns():
        # Read from the store, where derived tables are computed from all ranks, even if not copied.
        rows = store.table(name, **scope).arrow()
        con.register(_SOURCE, rows)
        table = f"derived.{sqltext.identifier(name)}"
        for statement in sqltext.replace_view_by_table(table, sqltext.of_scope(_SOURCE, ())):
            con.execute(statement)
        con.unregister(_SOURCE)
        counts[name] = len(rows)
    return counts
