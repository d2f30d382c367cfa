"""Runs statements that do not depend on each other at the same time, each on a connection of its own.

The engine writes a Parquet row group on one thread, and a table of a usual
rank is one row group: one after the other, the COPYs of a rank keep one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import duckdb

from hta_sql.store.engine import beside

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
    cursors = beside(con, len(tasks))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(with_cursor, cursors, tasks))
