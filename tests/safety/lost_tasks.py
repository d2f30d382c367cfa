"""Tasks of an executor whose worker dies at a stage of them.

A worker process finds :func:`dies` by its import, so that nothing of it depends on the test that asks.
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
"""Of a rank: nothing is done; the trace is open; the Parquet has no names yet; some of it has; all has."""

ASKING = ("before", "asking", "putting", "answered")
"""Of a question: nothing is done; the store is open; its rows are on their way there; all is done."""


STARTED_S = 0.5
"""Dask starts no other for a worker process that ends before its start was noticed."""


class Dying(Executor):
    """Gives tasks to another executor; one of them ends its worker.

    Args:
        inner: The other.
        stage: When the worker ends.
        mark: A file: it is written by the first that dies, and no other does. None: all that try do.
        rank: Only the task that reads this rank dies; None: that which is given first.
    """

    def __init__(self, inner: Executor, stage: str, mark: Path | None, rank: int | None) -> None:
        self._inner, self._stage, self._mark, self._rank = inner, stage, mark, rank
        self._given = 0

    def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """Submit what dies, or the task itself."""
        self._given += 1
        if self._given > 1 if self._rank is None else given[0].rank != self._rank:
            return self._inner.submit(task, *given, **named)
        return self._inner.submit(dies, self._stage, self._mark, task, *given)


def dies(stage: str, mark: Path | None, task: Callable[..., Any], *given: Any) -> Any:
    """Do a task, and end this process at a stage of it."""
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
    """Rename the first file of a table, and end at the second."""
    if list(target.parent.parent.parent.parent.glob("*/*/rank=1/[!.]*")):
        os._exit(1)
    os.replace(path, target)  # noqa: PTH105 - that is what is patched
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
"""Stage ─▶ what does not come to its end there."""


class KilledWorker(Exception):  # noqa: N818 - what Dask calls it
    """A worker has died."""


class Losing(Executor):
    """Runs tasks here; that of rank 1 is lost at one of its file operations.

    Args:
        store: Whose files are looked at.
        at: Number of the operation; one that is beyond the last: its result is lost.
        times: So often, then it is done.
    """

    def __init__(self, store: Path, at: int, times: int = 1) -> None:
        self._store, self._at, self._times = store, at, times
        self.operations: list[str] = []

    def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """Run a task, or the beginning of it."""
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
