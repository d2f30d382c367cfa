"""Pool of worker processes of a safe store, which replaces workers that die."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hta_sql.closing import Closing
from hta_sql.errors import HtaSqlError, QueryError, StoreError
from hta_sql.machine import duckdb_memory_limit, remove_left_by_dead, resident_bytes, size_of
from hta_sql.store.query.limits import too_long
from hta_sql.store.query.worker_processes import Processes
from hta_sql.store.query.worker_protocol import (
    AnswerTooLargeError,
    WorkerDiedError,
    answer_of,
    end_of,
    interrupt,
    request_of,
    send,
)
from hta_sql.store.query.worker_state import WorkerState, has_ended, too_large

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

MOST_WORKERS = 16
"""Maximum number of concurrent queries of a store; further queries wait."""

SPARES = 3
"""Number of idle workers that are ready for the next queries while others run."""

GRACE_S = 0.4
"""Time [s] that an interrupted query has to end before its worker is killed."""

LONG_S = 0.3
"""Time [s] after which a query gets a lower priority, so that short queries do not wait for it."""

LOWER_PRIORITY = 15

TICK_S = 0.05
UNUSED_S = 20.0
"""Time [s] after which an idle worker beyond the spares is ended."""

KILLED = -9
UNASKED_S = 0.2
"""A worker killed from outside within this time [s] is assumed to have died before the request."""

LEAST_ENGINE = 256 << 20
"""Minimum memory limit of a worker's engine [bytes], unless the limit of the store is lower."""


class _DiedUnaskedError(QueryError):
    """A worker was killed from outside while it was idle."""


class Workers(Closing):
    """Runs the queries of a safe store in separate processes.

    Args:
        path: Location of the store.
        options: Options of the store.
    """

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        memory = options["memory_limit"] or duckdb_memory_limit()
        self._seconds: float | None = options["limits"].seconds
        self._memory = size_of(memory)
        engine = min(self._memory, max(self._memory // 2, LEAST_ENGINE))
        share = {"memory_limit": f"{engine >> 20}MiB"} if engine < self._memory else {}
        self._engine_memory = engine
        self._setup = request_of((path, {**options, "memory_limit": memory, **share}))
        self.closed = False
        self._reset()
        _LIVING.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._processes = Processes()
        self._idle: list[WorkerState] = []
        self._busy: list[WorkerState] = []
        self._ending: list[WorkerState] = []
        self._failures: list[HtaSqlError] = []
        self._preloaded: set[str] = set()
        self._starting = self._waiting = 0
        self._watcher: threading.Thread | None = None

    def warm(self) -> None:
        """Start the first worker in advance, so that the first query need not wait for it."""
        with self._changed:
            self._start(1)

    def sql(self, query: str, parameters: Any, most_rows: int | None) -> pa.Table:
        """Run a query and return its rows.

        Raises:
            QueryError: The query failed or timed out, or its worker process ended.
        """
        given = {"query": query, "parameters": parameters, "most_rows": most_rows}
        return self._request("sql", given, self._seconds)

    def call(self, function: str, given: dict[str, Any], seconds: float | None = None) -> Any:
        """Call ``module:function`` with the store in a worker; return its JSON value.

        Raises:
            HtaSqlError: The function raised this error.
            QueryError: The call timed out, or its worker process ended.
        """
        module = function.partition(":")[0]
        if module not in self._preloaded:
            self._preloaded.add(module)
            self._processes.preload(module)
        return self._request(function, given, seconds or self._seconds)

    def _request(self, what: str, given: dict[str, Any], seconds: float | None) -> Any:
        frame = request_of((seconds, what, given))
        try:
            return self._answered(frame, seconds)
        except _DiedUnaskedError:
            return self._answered(frame, seconds)

    def _answered(self, frame: bytes, seconds: float | None) -> Any:
        """Send a request to a worker and return its answer.

        Raises:
            _DiedUnaskedError: The worker was killed from outside before the request began.
        """
        worker = self._claimed(seconds)
        is_usable = False
        try:
            send(worker.process, frame)
            worker.sent = True
            answer = answer_of(worker.process, self._engine_memory)
            is_usable = True
        except WorkerDiedError as error:
            raise self._death_of(worker) from error
        except AnswerTooLargeError as error:
            raise QueryError(str(error)) from error
        except HtaSqlError as error:
            is_usable = True
            if worker.reason:
                raise worker.reason from error
            raise
        finally:
            self._release(worker, is_usable=is_usable)
        return answer

    def _death_of(self, worker: WorkerState) -> HtaSqlError:
        if worker.reason:
            return worker.reason
        if self.closed:
            return StoreError("The store was closed while the query was running.")
        ran = time.monotonic() - worker.since
        if worker.process.wait(0.5) is None:
            worker.process.kill()
        status = worker.process.wait()
        died = f"The worker process of this query ended {end_of(status)}."
        if status == KILLED and ran < UNASKED_S:
            return _DiedUnaskedError(died)
        return QueryError(
            f"{died} The store remains usable. Try a simpler query; if an ordinary query fails, "
            "report it."
        )

    def _claimed(self, seconds: float | None) -> WorkerState:
        """Take an idle worker, waiting until a worker is idle if all are busy."""
        called = time.monotonic()
        with self._changed:
            self._waiting += 1
            try:
                while not self.closed:
                    while self._idle:
                        worker = self._idle.pop()
                        if not worker.process.has_ended():
                            worker.begin(called, seconds)
                            self._busy.append(worker)
                            self._changed.notify_all()
                            return worker
                        worker.process.close()
                    if self._failures:
                        raise self._failures.pop()
                    self._start(self._waiting)
                    is_full = len(self._busy) >= MOST_WORKERS
                    self._changed.wait(TICK_S)
                    if is_full and seconds and time.monotonic() > called + seconds:
                        raise QueryError(
                            f"{MOST_WORKERS} other queries are running on this store. Try again later."
                        )
            finally:
                self._waiting -= 1
        raise StoreError("The store is closed; open it again.")

    def _release(self, worker: WorkerState, *, is_usable: bool) -> None:
        with self._changed:
            # First, because the watcher lowers the priority of busy workers.
            self._busy.remove(worker)
        is_usable = is_usable and self._is_fresh(worker)
        with self._changed:
            is_usable = is_usable and not self.closed
            if is_usable:
                worker.rest()
                self._idle.append(worker)
            else:
                self._let_end(worker)
            self._changed.notify_all()

    def _let_end(self, worker: WorkerState) -> None:
        """End a worker without waiting; the watcher reaps it. Call with the lock held."""
        if worker.stopped:
            worker.process.kill()
        worker.process.close()
        worker.since = time.monotonic()
        self._ending.append(worker)

    def _is_fresh(self, worker: WorkerState) -> bool:
        """Restore a worker's priority; return whether this worked and its memory is still small."""
        if worker.is_low:
            try:
                os.setpriority(os.PRIO_PGRP, worker.process.pid, os.getpriority(os.PRIO_PROCESS, 0))
            except OSError:
                return False  # only a privileged process may raise a priority
            worker.is_low = False
        return resident_bytes(worker.process.pid) - worker.base < LEAST_ENGINE

    def _start(self, wanted: int) -> None:
        """Start workers until the given number are idle or starting. Call with the lock held."""
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        ready = len(self._idle) + self._starting
        room = MOST_WORKERS + SPARES - ready - len(self._busy)
        for _ in range(min(wanted - ready, room)):
            self._starting += 1
            threading.Thread(target=self._start_one, daemon=True).start()

    def _start_one(self) -> None:
        process = failure = worker = None
        try:
            process = self._processes.start()
            send(process, self._setup)
            answer_of(process, 0)
            worker = WorkerState(process, resident_bytes(process.pid))
        except HtaSqlError as error:
            failure = error
        except WorkerDiedError:
            status = process.wait() if process else None
            failure = QueryError(
                f"A worker process for queries ended {end_of(status)} while starting."
            )
        except Exception as error:  # noqa: BLE001 - reported to the caller that waits for the worker
            failure = QueryError(f"A worker process for queries cannot start: {error!r}")
        with self._changed:
            self._starting -= 1
            if worker and not self.closed:
                self._idle.append(worker)
                process = None
            elif failure and self._waiting:
                self._failures.append(failure)
            self._changed.notify_all()
        if process:
            process.kill()
            process.wait()
            process.close()
        if self.closed:
            self._processes.close()

    def _watch(self) -> None:
        """Interrupt, deprioritize and kill workers that exceed limits; keep spares ready."""
        while not self.closed:
            with self._changed:
                now = time.monotonic()
                for worker in self._busy:
                    self._look_at(worker, now)
                self._bound_memory()
                if self._busy:
                    self._start(SPARES)
                unused = [w for w in self._idle[:-SPARES] if now - w.since > UNUSED_S]
                for worker in unused:
                    self._idle.remove(worker)
                    self._let_end(worker)
                self._ending = [worker for worker in self._ending if not has_ended(worker, now)]
                if not self.closed:
                    many = len(self._idle) > SPARES
                    soon = self._busy or self._ending
                    self._changed.wait(TICK_S if soon else UNUSED_S if many else None)

    def _look_at(self, worker: WorkerState, now: float) -> None:
        ran = now - worker.since
        if worker.seconds is not None and ran > worker.seconds and not worker.stopped:
            worker.stopped, worker.reason = now, too_long(worker.seconds)
        if worker.stopped and now - worker.stopped > GRACE_S:
            worker.process.abandon()
        elif worker.stopped and worker.sent:
            interrupt(worker.process)  # repeatedly: an interrupt between statements is lost
        if ran > LONG_S and not worker.is_low and hasattr(os, "setpriority"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PGRP, worker.process.pid, LOWER_PRIORITY)
            worker.is_low = True

    def _bound_memory(self) -> None:
        """Kill the largest busy worker if their total memory exceeds the limit of the store."""
        sizes = {id(w): resident_bytes(w.process.pid) - w.base for w in self._busy}
        if sum(sizes.values()) > self._memory:
            worker = max(self._busy, key=lambda w: sizes[id(w)])
            worker.stopped, worker.reason = worker.stopped or time.monotonic(), too_large()
            worker.process.abandon()

    def interrupt(self) -> None:
        """Interrupt the running queries."""
        with self._changed:
            for worker in self._busy:
                if not worker.stopped:
                    worker.stopped = time.monotonic()
                    worker.reason = QueryError("INTERRUPT Error: Interrupted!")
            self._changed.notify_all()

    def close(self) -> None:
        """End all workers; running queries fail."""
        with self._changed:
            self.closed = True
            busy, killed = list(self._busy), bool(self._busy or self._ending)
            idle, self._idle = self._idle, []
            ending, self._ending = self._ending, []
            self._changed.notify_all()
        for worker in busy:
            worker.process.abandon()
        for worker in idle:
            worker.process.close()
        for worker in (*idle, *busy, *ending):
            if worker.process.wait(1.0) is None:
                worker.process.kill()
                worker.process.wait()
        self._processes.close()
        if killed:
            remove_left_by_dead()

    def leave_to_parent(self) -> None:
        """Drop the parent's workers in the child of a fork; queries start new ones."""
        for worker in (*self._idle, *self._busy, *self._ending):
            worker.process.forget()
        self._processes.forget()
        self._reset()


_LIVING: weakref.WeakSet[Workers] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for workers in list(_LIVING):
        workers.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
