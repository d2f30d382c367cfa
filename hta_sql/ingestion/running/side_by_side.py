"""Runs statements that do not depend on each other at the same time, each on a connection of its own.

The engine writes a Parquet row group on one thread, and a table of a usual
rank is one row group: one after the other, the COPYs of a rank keep one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import duckdb

from hta_sql.store.catalog.shared_engine import extra_connections

Given = TypeVar("Given")
Made = TypeVar("Made")


def side_by_side(
    con: duckdb.DuckDBPyConnection,
    threads: int,
    do: Callable[[duckdb.DuckDBPyConnection, Given], Made],
    tasks: Iterable[Given],
) -> list[Made]:
    """Do each task on a cursor of the connection, so many at once; the largest should come first.

    What they read must not be TEMP: that belongs to one connection.

    Returns:
        What each task returned, in the order of the tasks.
    """

    def with_cursor(cursor: duckdb.DuckDBPyConnection, task: Given) -> Made:
        with cursor:
            return do(cursor, task)

    tasks = list(tasks)
    if threads == 1 or len(tasks) < 2:
        return [do(con, task) for task in tasks]
    cursors = extra_connections(con, len(tasks))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(with_cursor, cursors, tasks))


class Beside:
    """Does one task at a time extra_connections its caller, on a connection of its own.

    Args:
        con: A connection to the database. The tasks do not use it, which has no second caller at once.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        (self._cursor,) = extra_connections(con)
        self._pool = ThreadPoolExecutor(1)
        self._task: Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        """A task is under way: another would wait for it."""
        return self._task is not None and not self._task.done()

    def do(self, task: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Begin a task when the one before has ended, and raise what that has raised."""
        self.wait()
        self._task = self._pool.submit(task, self._cursor)

    def wait(self) -> None:
        """Wait for the end of the task, and raise what it has raised."""
        task, self._task = self._task, None
        if task:
            task.result()

    def close(self) -> None:
        """Wait for the end of the task, whatever it has raised."""
        self._pool.shutdown()
        self._cursor.close()
