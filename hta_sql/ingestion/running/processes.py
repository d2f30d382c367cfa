"""Worker processes that ingest traces: spawned without the caller's script, never orphaned."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from threading import Lock, Thread
from types import ModuleType
from typing import Any

from hta_sql.machine import remove_temporary


class _Worker(SpawnProcess):
    """A process that does not import the caller's main script.

    A spawned process imports the main script. Without ``if __name__ == "__main__"``, a script would
    then start its ingest again in every worker. Workers do not need the script, so an empty module
    replaces it while they start.
    """

    @staticmethod
    def _Popen(process: BaseProcess) -> Any:  # noqa: N802 - hook of multiprocessing
        with _STARTING:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process)  # noqa: SLF001
            finally:
                sys.modules["__main__"] = script


class _Spawn(SpawnContext):
    # spawn, because forking a process with DuckDB threads deadlocks.
    Process = _Worker


_STARTING = Lock()

SPAWN = _Spawn()


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Create a pool of worker processes that end with this process."""
    return ProcessPoolExecutor(workers, mp_context=SPAWN, initializer=end_with_parent)


def end_with_parent() -> None:
    """Exit this process when its parent is killed.

    Otherwise it would wait for work forever, or write files of a dead ingest into a store from
    which the next ingest has already deleted orphaned files.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    remove_temporary()
    os._exit(1)
