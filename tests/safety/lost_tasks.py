"""Executors that lose a worker at a chosen stage of a task.

A worker process imports :func:`dies` from this module, so it need not import the calling test.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hta_sql.ingestion import tables
from hta_sql.store.disk.folder import LocalFolder
from hta_sql.store.query import distributed
from hta_sql.traces.chunks import TraceReader
from tests.safety.file_faults import StoppedError, faults

READING = ("before", "reading", "writing", "naming", "written")
"""Stages of reading a rank: not started, trace open, then no, some or all files renamed."""

ASKING = ("before", "asking", "putting", "answered")
"""Stages of a query: not started, store open, sending rows, complete."""


STARTED_S = 0.5
"""Delay before a worker dies [s]. Dask does not replace a worker that dies too early."""


class Dying(Executor):
    """Executor that forwards tasks to an inner executor, and makes one of them kill its worker.

    Args:
        inner: Executor that runs the tasks.
        stage: Stage at which the worker exits.
        mark: File that the first dying task creates so that no other task dies. None: every
            matching task dies.
        rank: Rank whose task dies; None: the first submitted task dies.
    """

    def __init__(self, inner: Executor, stage: str, mark: Path | None, rank: int | None) -> None:
        self._inner, self._stage, self._mark, self._rank = inner, stage, mark, rank
        self._given = 0

    def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """Submit a task, wrapped so that it kills its worker if it is the chosen one."""
        self._given += 1
        if self._given > 1 if self._rank is None else given[0].rank != self._rank:
            return self._inner.submit(task, *given, **named)
        return self._inner.submit(dies, self._stage, self._mark, task, *given)


def dies(stage: str, mark: Path | None, task: Callable[..., Any], *given: Any) -> Any:
    """Run a task, and exit the process at one of its stages."""
    if mark and mark.exists():
        return task(*given)
    if mark:
        mark.touch()
    time.sleep(STARTED_S)
    if stage == "before":
        os._exit(1)
    with ExitStack() as patched:
        if stage in PLACES:
            patched.enter_context(patch.object(*PLACES[stage]))
        patched.enter_context(patch.object(distributed, "LARGE_BYTES", 1))
        task(*given)
    if stage in PLACES:
        raise AssertionError(f"{stage} was not reached")
    os._exit(1)


def _end(*_given: Any, **_named: Any) -> None:
    os._exit(1)


def _second_name(path: Path, target: Path) -> Path:
    """Rename the first file of rank 1, and exit instead of renaming the second."""
    if list(target.parent.parent.parent.parent.glob("*/*/rank=1/[!.]*")):
        os._exit(1)
    os.replace(path, target)  # noqa: PTH105 - the patched function
    return target


def _half(folder: LocalFolder, source: Path, name: str) -> None:
    place = folder.local / name
    place.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    place.with_name(f".{place.name}.partial").write_bytes(content[: len(content) // 2])
    os._exit(1)


PLACES: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "reading": (TraceReader, "_end_of_events", _end),
    "writing": (tables, "sync_all", _end),
    "naming": (Path, "replace", _second_name),
    "asking": (distributed, "table_of", _end),
    "putting": (LocalFolder, "put", _half),
}
"""Stage ─▶ object, attribute, and the replacement function that ends the process."""


class KilledWorker(Exception):  # noqa: N818 - Dask's name
    """Error of a task whose worker has died."""


class Losing(Executor):
    """Executor that runs tasks in this process, and loses the task of rank 1 at a file operation.

    Args:
        store: Store whose files are observed.
        at: Index of the operation. If it is beyond the last operation, only the task's result is
            lost.
        times: Number of times that the task is lost before it succeeds.
    """

    def __init__(self, store: Path, at: int, times: int = 1) -> None:
        self._store, self._at, self._times = store, at, times
        self.operations: list[str] = []

    def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """Run a task, up to the chosen file operation if the task must be lost."""
        future: Future[Any] = Future()
        if given[0].rank != 1 or not self._times:
            future.set_result(task(*given, **named))
            return future
        self._times -= 1
        try:
            with faults(self._store, self._at, "stop") as layer:
                task(*given, **named)
        except StoppedError:
            pass
        self.operations = layer.seen
        future.set_exception(KilledWorker("the worker of rank 1 has died"))
        return future
