"""Distributed execution of an analysis: each task opens the store by path and computes a partition.

A task returns its rows, or, for large results, the path of a file in the store. The file name
contains a hash of everything that the rows depend on, so the same query finds the file again. The
manifest does not reference the file, so the next ingest that reads traces deletes it as orphaned.
"""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hta_sql._version import __version__
from hta_sql.errors import (
    HtaSqlError,
    QueryError,
    StoreDamagedError,
    StoreError,
    StoreNotFoundError,
)
from hta_sql.library.objects import Library, SqlObject, load_library
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import Identity, built_from, identity_of
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.manifest import TABLES, digest_of
from hta_sql.store.query.connection import Connection
from hta_sql.store.query.execution import Scope, concatenated, questions_of, table_of
from hta_sql.store.query.limits import engine

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

log = logging.getLogger(__name__)

LARGE_BYTES = 16 << 20
"""Size of a task's rows [bytes] above which they are written to the store."""


@dataclass(frozen=True)
class Task:
    """A partition of a query, for a worker.

    Attributes:
        root: Path or URL of the store.
        options: Threads and memory of the engine; None: the defaults of the worker.
        wanted: Expected identity of the store.
        analysis: Name and version of the analysis.
        values: Parameters of the analysis.
    """

    root: str
    options: Mapping[str, Any]
    wanted: Identity
    analysis: str
    values: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Prefix of the file for a large result, relative to the store.

        The checksum of the file completes its name.
        """
        asked = f"{self.wanted} {self.analysis} {sorted(self.values.items())}"
        return f"{TABLES}/{self.analysis}/answers/{digest_of(asked.encode())[:24]}-"


TaskResult = bytes | str
"""Rows as an Arrow stream, or the path of a file with the rows, relative to the store."""


def compute(task: Task) -> TaskResult:
    """Compute a task; called by a worker.

    Raises:
        StoreNotFoundError: The worker cannot see the store.
        StoreError: The worker sees a different version of the store, or not all of its files.
        QueryError: The engine failed.
    """
    folder, library = store_folder(task.root), load_library()
    host = socket.gethostname()
    try:
        seen = identity_of(folder, library)
    except StoreNotFoundError as error:
        raise StoreNotFoundError(
            f"The worker on {host} found no store at {task.root!r}. Workers must reach the store "
            "under the same path, on a shared file system or in object storage."
        ) from error
    # A worker may resolve the path to a different location, so only the contents are compared.
    if (seen.manifest, seen.library) != (task.wanted.manifest, task.wanted.library):
        raise StoreError(_difference(host, task, seen))
    for path in folder.files(str(PurePosixPath(task.path).parent)):
        if path.startswith(task.path) and _is_named_by(path, folder.digest(path)):
            return path
    options = dict(task.options)
    verify = bool(options.pop("verify", False))
    with Connection(folder, engine(**options), library, safe=False, verify=verify) as connection:
        runs, analysis = task.values.get("runs"), library.find(task.analysis)
        questions = questions_of(analysis, task.values, connection.opened().ranks)
        rows = connection.run(lambda con: table_of(con, questions, analysis), runs)
        # A run is left out if the worker does not see its files.
        if lost := set(runs or ()) - {run for run, *_ in connection.opened().ranks}:
            raise StoreError(
                f"The worker on {host} cannot read the Parquet files of runs in {task.root!r}: "
                f"{', '.join(sorted(lost))}."
            )
    put = _put(folder, rows, task.path) if rows.nbytes >= LARGE_BYTES else None
    return put or _stream(rows)


def gathered(
    tasks: Iterable[Task], executor: Executor, waiting: set[Future[TaskResult]]
) -> list[TaskResult]:
    """Run tasks on an executor; return their results in the same order.

    Args:
        tasks: Tasks to compute.
        executor: Executor that runs them.
        waiting: Set that contains the futures of unfinished tasks, so that others can cancel them.

    Raises:
        HtaSqlError: A worker raised this error, or failed in another way.
    """
    futures: list[Future[TaskResult]] = []
    try:
        for task in tasks:
            futures.append(executor.submit(compute, task))
            waiting.add(futures[-1])
        return [future.result() for future in futures]
    except HtaSqlError:
        raise
    except Exception as error:  # which errors are raised depends on the executor
        raise QueryError(
            f"A worker failed: {type(error).__name__}: {error}. Workers need hta_sql {__version__}, "
            "and enough memory for the ranks of a task."
        ) from error
    finally:
        waiting.difference_update(futures)
        for future in futures:
            future.cancel()


def read(folder: StoreFolder, parts: Iterable[TaskResult], analysis: SqlObject) -> pa.Table:
    """Return the rows of partitions, in the row order of the analysis.

    Raises:
        StoreError: A file of a partition is missing.
    """
    return concatenated([_rows(folder, part) for part in parts], analysis)


def _rows(folder: StoreFolder, part: TaskResult) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed
    import pyarrow.parquet as pq  # noqa: PLC0415

    if isinstance(part, bytes):
        return pa.ipc.open_stream(part).read_all()
    try:
        content = folder.read(part)
        if not _is_named_by(part, digest_of(content)):
            raise StoreDamagedError(f"{folder.path(part)!r} is damaged; run the query again.")
        return pq.read_table(io.BytesIO(content))
    except FileNotFoundError as error:
        raise StoreError(
            f"{folder.path(part)!r} was deleted by a later ingest; run the query again."
        ) from error


def unchanged_identity(
    folder: StoreFolder, library: Library, con: duckdb.DuckDBPyConnection
) -> Identity:
    """Return the identity of a store, provided that the store is unchanged since it was opened.

    Raises:
        StoreError: The store was changed after it was opened.
    """
    now, built = identity_of(folder, library.base), built_from(con)
    if built and built.manifest != now.manifest:
        raise StoreError(f"{folder.root!r} has changed since it was opened; open it again.")
    return now


def tasks_of(
    folder: StoreFolder,
    options: Mapping[str, Any],
    wanted: Identity,
    question: tuple[SqlObject, Mapping[str, Any]],
    scopes: Iterable[Scope],
) -> list[Task]:
    """Create the tasks of a query.

    Args:
        folder: The store.
        options: Threads and memory of the engine.
        wanted: Expected identity of the store.
        question: An analysis and its parameters.
        scopes: Runs and ranks of each task.
    """
    analysis, values = question
    found = [
        Task(folder.root, options, wanted, analysis.name, {**values, **scope}) for scope in scopes
    ]
    log.info("%s: %d tasks.", analysis.base_name, len(found))
    return found


def _difference(host: str, task: Task, seen: Identity) -> str:
    if seen.library != task.wanted.library:
        return (
            f"The hta_sql version on worker {host} ({__version__}) differs from that of the caller; "
            "install the same version on both."
        )
    return (
        f"The store at {task.root!r} on worker {host} differs from the store of the caller. If the store "
        "was changed in the meantime, run the query again. Otherwise, the worker has an older copy."
    )


def _stream(rows: pa.Table) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _is_named_by(path: str, digest: str) -> bool:
    return path.endswith(f"-{digest[:24]}.parquet")


def _put(folder: StoreFolder, rows: pa.Table, begin: str) -> str | None:
    """Write rows into the store; return the path of the file, or None if the store is read-only."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - imported only when needed

    with temporary_folder() as temporary:
        local = Path(temporary, "rows.parquet")
        pq.write_table(rows, local, compression="zstd", compression_level=1)
        name = f"{begin}{file_digest(local)[:24]}.parquet"
        try:
            folder.put(local, name)
        except OSError:
            return None
    return name
