"""State of a worker in the pool, and of the query that the worker runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hta_sql.errors import QueryError
from hta_sql.store.query.worker_processes import Process

WAIT_S = 0.4
"""Time [s] that a query may wait for a worker before the wait counts towards its time limit."""


@dataclass(eq=False)
class WorkerState:
    """A worker and the query that it runs."""

    process: Process
    base: int
    """Resident memory when the worker became ready [bytes]."""
    since: float = field(default_factory=time.monotonic)
    """Start of the worker's query, or of its idle time (monotonic clock) [s]."""
    seconds: float | None = None
    stopped: float | None = None
    """Time when the query was first interrupted (monotonic clock) [s]; None if it was not."""
    reason: QueryError | None = None
    """Error that explains why the query was stopped."""
    sent: bool = False
    is_low: bool = False

    def begin(self, called: float, seconds: float | None) -> None:
        """Record the start of a query; a long wait for a worker uses up to half of the limit."""
        now = time.monotonic()
        self.since = now if seconds is None else max(min(now, called + WAIT_S), now - seconds / 2)
        self.seconds = seconds

    def rest(self) -> None:
        """Reset the state after an answer."""
        self.since, self.seconds, self.sent = time.monotonic(), None, False
        self.stopped = self.reason = None


def has_ended(worker: WorkerState, now: float) -> bool:
    """Return whether a released worker has ended; kill it if it takes longer than 1 s."""
    if worker.process.status() is not None:
        return True
    if now - worker.since > 1:
        worker.process.kill()
    return False


def too_large() -> QueryError:
    """Return the error of a query that was killed because the store exceeded its total memory."""
    return QueryError(
        "Out of Memory: together, the queries of this store exceed its memory_limit, and this "
        "query used the most. Request fewer runs, ranks or steps, or open the store with a larger "
        "memory_limit."
    )
