"""Record laps of wall and CPU time for all workers, and print them as the last line of output."""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any


class Laps:
    """Named laps of one process; CPU includes children that have ended."""

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, Any]] = {}
        self._wall = time.perf_counter()
        self._cpu = _cpu_seconds()

    def lap(self, name: str, **facts: Any) -> None:
        """Record the time since the last lap under a name."""
        wall, cpu = time.perf_counter(), _cpu_seconds()
        self.laps[name] = {"wall_s": wall - self._wall, "cpu_s": cpu - self._cpu, **facts}
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()

    def print(self, **facts: Any) -> None:
        """Print the result as one line of JSON."""
        print(json.dumps({"laps": self.laps, **facts}))


def request() -> dict[str, Any]:
    """Return the request of this worker from its command line."""
    asked: dict[str, Any] = json.loads(sys.argv[1])
    return asked


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
