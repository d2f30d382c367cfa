"""Settings of an open engine: the only module with SET and PRAGMA.

Settings that an engine accepts when it starts are passed to ``duckdb.connect`` instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

QUICKER_PLANS = ("disabled_optimizers", "projection_pullup")
"""This optimizer takes half of the planning time of a query with 25 rules, without any benefit."""


def put(con: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    """Change a setting; its name is trusted.

    Raises:
        duckdb.InvalidInputException: The settings of the engine are locked.
        duckdb.CatalogException: The engine does not know the setting.
    """
    con.execute(f"SET {name} = $value", {"value": value})


def plan_quicker(con: duckdb.DuckDBPyConnection) -> None:
    """Skip an optimizer that costs more than it saves, if this version of the engine has it."""
    with suppress(duckdb.Error):
        put(con, *QUICKER_PLANS)


def cache_parquet_metadata(con: duckdb.DuckDBPyConnection) -> None:
    """Cache the Parquet metadata of unchanged files, unless the settings are locked."""
    with suppress(duckdb.InvalidInputException):
        put(con, "parquet_metadata_cache", True)


def limit_spill(con: duckdb.DuckDBPyConnection, size: str) -> None:
    """Limit the total size of spilled data, unless the settings are locked."""
    with suppress(duckdb.InvalidInputException):
        put(con, "max_temp_directory_size", size)


def ignore_python_variables(con: duckdb.DuckDBPyConnection) -> None:
    """Let the name of a missing table be an error, even if a Python variable has that name."""
    put(con, "python_enable_replacements", False)


def hide_progress(con: duckdb.DuckDBPyConnection) -> None:
    """Draw no progress bar.

    In a process without a main script, such as a worker, the engine takes stdout for a terminal,
    and would draw a bar there for statements that take seconds.
    """
    put(con, "enable_progress_bar", False)


def discard_at_end(con: duckdb.DuckDBPyConnection) -> None:
    """Write no checkpoint when a temporary database is closed."""
    con.execute("PRAGMA disable_checkpoint_on_shutdown")


@contextmanager
def unordered(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let the engine return rows without ORDER BY in any order, which takes half of the memory."""
    put(con, "preserve_insertion_order", False)
    try:
        yield
    finally:
        put(con, "preserve_insertion_order", True)


def lock(con: duckdb.DuckDBPyConnection, folders: list[str]) -> None:
    """Restrict an engine to the files of some folders, and lock its settings, irreversibly."""
    put(con, "allowed_directories", folders)
    put(con, "autoinstall_known_extensions", False)
    put(con, "autoload_known_extensions", False)
    ignore_python_variables(con)
    put(con, "enable_external_access", False)
    put(con, "lock_configuration", True)
