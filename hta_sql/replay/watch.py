"""Limits of the computation of derived tables: progress, interruption, time and memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from hta_sql.errors import QueryError
from hta_sql.machine import duckdb_memory_limit, size_of

AGAIN_S = 0.1
"""Interval between interrupts of a statement that has not stopped yet [s]."""

Progress = Callable[[str, int, int], None]
"""Called with the name of the current table, the number of completed parts, and the total."""


class ComputationStoppedError(QueryError):
    """A computation was interrupted, or exceeded its time limit."""


@dataclass
class Watch:
    """Limits a computation, which must call :meth:`check` at least every tenth of a second.

    Attributes:
        seconds: Time after which the computation is interrupted [s]; None for no limit.
        memory_limit: Memory limit of the engine, and separately of a replay; None for the engine's
            default.
        progress: Called as the computation proceeds.
    """

    seconds: float | None = None
    memory_limit: str | None = None
    progress: Progress | None = None
    _until: float = field(default=float("inf"), init=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        if self.seconds is not None:
            self._until = time.monotonic() + self.seconds

    @property
    def engine_limit(self) -> str:
        """Memory limit of the engine, in DuckDB's notation."""
        return self.memory_limit or duckdb_memory_limit()

    def stop(self) -> None:
        """Interrupt the computation, from another thread."""
        self._stopped.set()

    def report(self, what: str, done: int, total: int) -> None:
        """Report progress, and check the limits."""
        self.check()
        if self.progress:
            self.progress(what, done, total)

    def check(self) -> None:
        """Raise if the computation was interrupted or takes too long.

        Raises:
            ComputationStoppedError: The computation was interrupted or takes too long.
        """
        if self._stopped.is_set():
            raise ComputationStoppedError("Interrupted.")
        if time.monotonic() > self._until:
            raise ComputationStoppedError(
                f"Interrupted after {self.seconds:g} s while computing derived tables. Compute "
                "them first (hta-sql materialize), or allow more time: --timeout, Limits(seconds=…)."
            )

    def check_memory(self, what: str, needed: int) -> None:
        """Raise if something needs more memory than the limit.

        Args:
            what: What needs the memory, as the subject of the message.
            needed: Required memory [bytes].

        Raises:
            duckdb.OutOfMemoryException: The required memory exceeds the limit.
        """
        if needed > size_of(self.engine_limit):
            raise duckdb.OutOfMemoryException(
                f"Out of Memory: {what} needs about {needed / 1e9:.1f} GB, more than the limit of "
                f"{self.engine_limit}. Raise it: --memory-limit, TraceStore(memory_limit=…)."
            )

    @contextmanager
    def watching(self, con: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Also interrupt statements of a connection when the computation is stopped or out of time.

        Raises:
            ComputationStoppedError: A statement was interrupted.
        """
        self.check()
        done = threading.Event()

        def watch() -> None:
            while not done.wait(AGAIN_S):
                # Interrupt repeatedly, because an interrupt between two statements has no effect.
                if self._stopped.is_set() or time.monotonic() > self._until:
                    con.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        except duckdb.Error:
            self.check()
            raise
        finally:
            done.set()
            watcher.join()


UNWATCHED = Watch()
"""Never stops a computation, and applies only the engine's default memory limit."""
