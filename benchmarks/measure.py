"""Run one measurement in a fresh process: wall time, CPU of the process tree, peak memory.

CPU is the change of ``getrusage(RUSAGE_CHILDREN)``: user and system time of the process and of
every child that it waited for, including interpreter start-up. Peak memory is the largest sum of
resident set sizes over the process tree, read from /proc every few milliseconds; shared pages count
once for each process. Without /proc, it is the largest single process instead.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.02
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


@dataclass(frozen=True)
class Measured:
    """Cost of one process from start to end, and the line of JSON that it printed."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    answer: dict[str, Any]


class WorkerError(Exception):
    """A worker failed; the message contains the end of its output."""


def run_worker(python: str, worker: str, request: dict[str, Any]) -> Measured:
    """Run ``benchmarks.workers.<worker>`` with a request and measure it.

    Raises:
        WorkerError: The worker ended with an error or printed no result.
    """
    # HTA may be a checkout instead of an installed package.
    found_in = [str(REPOSITORY), *filter(None, [os.environ.get("HTA_CHECKOUT")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found_in)}
    environment.pop("HTA_DISABLE_NS_ROUNDING", None)
    command = [python, "-m", f"benchmarks.workers.{worker}", json.dumps(request)]
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as messages:
        before = _children_cpu()
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=answer, stderr=messages, cwd=REPOSITORY, env=environment
        )
        watch = _MemoryWatch(process.pid)
        process.wait()
        wall = time.perf_counter() - started
        cpu = _children_cpu() - before
        peak = watch.stop()
        answer.seek(0)
        messages.seek(0)
        lines = answer.read().decode(errors="replace").splitlines()
        said = messages.read().decode(errors="replace")
    if process.returncode or not lines:
        raise WorkerError(f"{worker} ended with {process.returncode}: {said[-2000:].strip()}")
    return Measured(wall, cpu, peak, json.loads(lines[-1]))


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _MemoryWatch:
    """Polls the memory of a process tree on a thread until it is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """Return the peak [MB]."""
        self._stopped.set()
        self._thread.join()
        if self._peak:
            return self._peak / 1e6
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e6

    def _watch(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            self._peak = max(self._peak, sum(map(_resident_bytes, _tree(self._pid))))


def _tree(root: int) -> list[int]:
    """List a process and its descendants; /proc names only the parent of each process."""
    parents: dict[int, int] = {}
    for entry in PROC.glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended in the meantime
        parents[int(entry.parent.name)] = int(after_name[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _resident_bytes(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0
