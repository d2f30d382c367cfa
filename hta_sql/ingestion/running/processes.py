"""Processes that read traces: started afresh, without the caller's script, and never orphaned."""

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
    """A process that does not run the caller's script again.

    A spawned process imports the main script, so that an ingest in a script without
    ``if __name__ == "__main__"`` would start itself over in every worker. Workers need nothing
    of it: while one starts, an empty module stands for the script.
    """

    @staticmethod
    def _Popen(process: BaseProcess) -> Any:  # noqa: N802 - multiprocessing's hook
        with _STARTING:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process)  # noqa: SLF001
            finally:
                sys.modules["__main__"] = script


class _Spawn(SpawnContext):
    # spawn: forking a process that has DuckDB threads deadlocks.
    Process = _Worker


_STARTING = Lock()

SPAWN = _Spawn()


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Make a pool of such processes."""
    return ProcessPoolExecutor(workers, mp_context=SPAWN, initializer=end_with_parent)


def end_with_parent() -> None:
    """Let this process end when the one that started it is killed.

    Else it would wait for work for ever, and write files of an ingest that is dead into a store
    that the next ingest has cleaned up.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    remove_temporary()
    os._exit(1)
