"""Worker processes of a safe store: run its queries where a crash or a hang harms nobody else."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hta_sql.closing import Closing
from hta_sql.errors import HtaSqlError, QueryError, StoreError
from hta_sql.machine import duckdb_memory_limit, size_of
from hta_sql.store.query.worker_process import WorkerProcess, pickled

if TYPE_CHECKING:
    import pyarrow as pa

MOST_WORKERS = 16
"""Maximum number of concurrent queries of a store; further queries wait."""

IDLE_WORKERS = 2
"""Maximum number of workers that stay when no query runs."""

LEAST_ENGINE = 256 << 20
"""Minimum memory limit of a worker's engine [bytes], unless the limit of the store is lower."""

START_S = 1.0
"""Time [s] that a worker may take to start before it counts towards the time limit of a query."""

TICK_S = 0.05
"""Interval [s] at which the memory of the workers is measured."""


class Workers(Closing):
    """Runs the queries of a safe store in worker processes.

    Args:
        path: Location of the store.
        options: Options of the store.
    """

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self._memory = size_of(options["memory_limit"] or duckdb_memory_limit())
        self._engine = min(self._memory, max(self._memory // 2, LEAST_ENGINE))
        # What a worker keeps of one query must not make the next one exceed the limit.
        self._most_kept = min(self._memory // 4, LEAST_ENGINE)
        self._setup = pickled((path, {**options, "memory_limit": f"{self._engine >> 10}KiB"}))
        self._seconds: float | None = options["limits"].seconds
        self.closed = False
        self._reset()
        self._free.append(self._new())
        self._free[-1].start()  # in advance, so that the first query need not wait for it
        _LIVING.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._free: list[WorkerProcess] = []
        self._running: set[WorkerProcess] = set()
        self._interrupts = 0
        self._watcher: threading.Thread | None = None

    def _new(self) -> WorkerProcess:
        return WorkerProcess(self._setup, self._engine)

    def _all(self) -> list[WorkerProcess]:
        return [*self._free, *self._running]

    def sql(self, query: str, parameters: Any, most_rows: int | None) -> pa.Table:
        """Run a query and return its rows; see :meth:`call`."""
        given = {"query": query, "parameters": parameters, "most_rows": most_rows}
        return self.call("sql", given)

    def call(self, what: str, given: dict[str, Any], seconds: float | None = None) -> Any:
        """Return the answer to a request: a table for ``sql``, else the JSON value of a function.

        Args:
            what: ``sql``, or ``module:function``.
            given: Arguments of ``TraceStore.sql``, or of the function.
            seconds: Time limit [s]; default: the limit of the store.

        Raises:
            HtaSqlError: The query or function raised this error.
            QueryError: The request timed out, or its worker process ended.
        """
        began, seconds = time.monotonic(), seconds or self._seconds
        pickled(given)  # before it waits
        worker = self._claimed(seconds)
        try:
            began += min(worker.make_ready(), START_S)
            left = seconds and max(began + seconds - time.monotonic(), 0.0)
            return worker.ask(pickled((seconds, left, what, given)), seconds, left)
        finally:
            self._release(worker)

    def _claimed(self, seconds: float | None) -> WorkerProcess:
        """Take the free worker that was used last, or a new one; wait if too many queries run."""
        with self._changed:
            before = self._interrupts
            is_over = self._changed.wait_for(
                lambda: (
                    len(self._running) < MOST_WORKERS or self.closed or self._interrupts > before
                ),
                seconds,
            )
            if self.closed:
                raise StoreError("The store is closed; open it again.")
            if self._interrupts > before:
                raise _interrupted()
            if not is_over:
                raise QueryError(
                    f"{MOST_WORKERS} other queries are running on this store. Try again later."
                )
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._bound_memory, daemon=True)
                self._watcher.start()
            worker = self._free.pop() if self._free else self._new()
            self._running.add(worker)
            return worker

    def _release(self, worker: WorkerProcess) -> None:
        """Make a worker free again, but end one that holds much memory, or that is not needed."""
        if worker.grown_bytes() > self._most_kept:
            worker.close()
        with self._changed:
            self._running.remove(worker)
            if len(self._free) >= IDLE_WORKERS or self.closed:
                worker.close()
            else:
                if not worker.is_alive():
                    with suppress(StoreError):  # the next query tries again
                        worker.start()
                self._free.append(worker)
                self._free.sort(key=lambda free: (free.is_alive(), free.is_ready))
            self._changed.notify()

    def _bound_memory(self) -> None:
        """While queries run, kill the largest worker if all exceed the memory limit of the store."""
        while True:
            with self._changed:  # until the largest is killed, so that no worker runs another query
                sizes = {worker: worker.grown_bytes() for worker in self._running}
                if not sizes:
                    self._watcher = None
                    return
                if sum(sizes.values()) > self._memory:
                    max(sizes, key=lambda worker: sizes[worker]).end(_out_of_memory())
            time.sleep(TICK_S)

    def interrupt(self) -> None:
        """Interrupt the queries that run, by killing their workers, and those that wait."""
        self._end_running(_interrupted())

    def _end_running(self, reason: HtaSqlError) -> None:
        with self._changed:
            self._interrupts += 1
            for worker in self._running:
                worker.end(reason)
            self._changed.notify_all()

    def close(self) -> None:
        """End all workers; running queries fail."""
        self.closed = True
        self._end_running(StoreError("The store was closed while the query was running."))
        for worker in self._all():
            worker.close()

    def leave_to_parent(self) -> None:
        """Drop the parent's workers in the child of a fork; queries start new ones."""
        for worker in self._all():
            worker.forget()
        self._reset()


def _interrupted() -> QueryError:
    return QueryError("INTERRUPT Error: Interrupted!")


def _out_of_memory() -> QueryError:
    return QueryError(
        "Out of Memory: together, the queries of this store exceed its memory_limit, and this query "
        "used the most. Request fewer runs, ranks or steps, or open the store with a larger "
        "memory_limit."
    )


_LIVING: weakref.WeakSet[Workers] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for workers in list(_LIVING):
        workers.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
