"""One engine a process for what is small and soon closed: a rank that is read, a catalog that is built.

To start an engine and to end it costs 20 ms of CPU, as much as to read a rank of few events; a
database that is attached to one that runs costs a quarter of a millisecond.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from threading import Lock

import duckdb

from hta_sql.library import sqltext
from hta_sql.machine import duckdb_memory_limit, temporary_prefix

_running: duckdb.DuckDBPyConnection | None = None
_lock = Lock()
_numbers = itertools.count()

QUICKER_PLANS = "SET disabled_optimizers = 'projection_pullup'"
"""Half of planning a question of 25 rules goes into that step, which brings nothing that was measured."""


@contextmanager
def scratch(file: Path | None = None, options: str = "") -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a database to the engine of this process, and let go of it.

    Its objects need no prefix. What is large, or has limits of its own, belongs into an engine of
    its own: this one has the limits of the process, and keeps them.

    Args:
        file: The database; None: an empty one in memory.
        options: Of ATTACH, trusted.
    """
    name = f"scratch_{next(_numbers)}"
    try:
        with _engine().cursor() as con:
            home = sqltext.use(_database_of(con))
            con.execute(sqltext.attach(str(file or ":memory:"), name, options))
            try:
                con.execute(sqltext.use(name))
                yield con
            except BaseException:
                with suppress(duckdb.Error):  # there was no transaction
                    con.execute("ROLLBACK")
                raise
            finally:
                con.execute(home)
                con.execute(sqltext.detach(name))
    except duckdb.Error:
        # Some errors are the end of an engine: the next one starts anew.
        _forget()
        raise


def extra_connections(
    con: duckdb.DuckDBPyConnection, count: int = 1
) -> list[duckdb.DuckDBPyConnection]:
    """Connect so many times more to the database that a connection is in."""
    home = sqltext.use(_database_of(con))
    cursors = [con.cursor() for _ in range(count)]
    for cursor in cursors:
        cursor.execute(home)
    return cursors


def _database_of(con: duckdb.DuckDBPyConnection) -> str:
    ((name,),) = con.execute("SELECT current_database()").fetchall()
    return str(name)


def _engine() -> duckdb.DuckDBPyConnection:
    global _running  # noqa: PLW0603 - one a process
    with _lock:
        if _running is None:
            _running = duckdb.connect(
                ":memory:",
                config={
                    # Each statement on the thread that asks it: many are asked at once here, and to
                    # part those of a small rank costs a tenth of its CPU and gains no time.
                    "threads": 1,
                    "memory_limit": duckdb_memory_limit(),
                    # Made when something has to go there, and removed with the engine.
                    "temp_directory": f"{gettempdir()}/{temporary_prefix()}{uuid.uuid4().hex}",
                },
            )
        return _running


def _forget() -> None:
    global _running  # noqa: PLW0603 - one a process
    _running = None


def _leave_to_parent() -> None:
    """Let the child of a fork have an engine of its own; this one's threads are not here.

    To end it would wait for them, so it stays for good.
    """
    global _lock  # noqa: PLW0603 - somebody in the parent may hold it
    _lock = Lock()
    if _running is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_running))
        _forget()


atexit.register(_forget)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
