"""What the pool of workers knows of one worker and of the query that it runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from hta_sql.errors import QueryError
from hta_sql.store.query.worker_processes import Process

WAIT_S = 0.4
"""Time that a query may wait for a worker before the wait counts as its own [s]."""


@dataclass(eq=False)
class WorkerState:
    """A worker and the query that it runs."""

    process: Process
    base: int
    """Resident memory when it became ready [bytes]."""
    since: float = field(default_factory=time.monotonic)
    """When its query began, or when it became idle."""
    seconds: float | None = None
    stopped: float | None = None
    """When its query was first interrupted."""
    reason: QueryError | None = None
    """Why it was stopped."""
    sent: bool = False
    is_low: bool = False

    def begin(self, called: float, seconds: float | None) -> None:
        """Note when a query began; a long wait for the worker counts, up to half of the time."""
        now = time.monotonic()
        self.since = now if seconds is None else max(min(now, called + WAIT_S), now - seconds / 2)
        self.seconds = seconds

    def rest(self) -> None:
        """Forget a query that was answered."""
        self.since, self.seconds, self.sent = time.monotonic(), None, False
        self.stopped = self.reason = None


def has_ended(worker: WorkerState, now: float) -> bool:
    """Whether a worker that was let go has ended; kill it if that takes long."""
    if worker.process.status() is not None:
        return True
    if now - worker.since > 1:
        worker.process.kill()
    return False


def resident(process: int) -> int:
    """Return the resident memory of a process; 0 if the system does not tell [bytes]."""
    try:
        pages = Path(f"/proc/{process}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def too_large() -> QueryError:
    """Return the error of a query that was killed because of the memory of all together."""
    return QueryError(
        "Out of Memory: the queries of this store together use more than its memory_limit, and this "
        "one uses most. Ask for fewer runs, ranks or steps, or open it with a larger memory_limit."
    )
