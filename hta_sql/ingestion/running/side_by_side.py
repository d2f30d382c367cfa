"""Runs independent statements in parallel, each on its own connection.

The engine writes a Parquet row group on one thread, and a table of a typical rank is one row group.
In sequence, the COPY statements of a rank would use only one core.
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
    """Run tasks in parallel, each on its own cursor of the connection; put the largest task first.

    Tasks must not read TEMP tables, which are visible to only one connection.

    Returns:
        The results in the order of the tasks.
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
    """Runs one background task at a time, on a separate connection.

    Args:
        con: A connection to the database. The tasks do not use it.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        (self._cursor,) = extra_connections(con)
        self._pool = ThreadPoolExecutor(1)
        self._task: Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a task is running, so that another task would have to wait."""
        return self._task is not None and not self._task.done()

    def do(self, task: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Wait for the previous task, raise its error if any, and start a task."""
        self.wait()
        self._task = self._pool.submit(task, self._cursor)

    def wait(self) -> None:
        """Wait for the task, and raise its error if any."""
        task, self._task = self._task, None
        if task:
            task.result()

    def close(self) -> None:
        """Wait for the task, and ignore its error."""
        self._pool.shutdown()
        self._cursor.close()
