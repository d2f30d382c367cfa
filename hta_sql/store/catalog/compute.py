"""Computes derived tables and answers of a run, and writes them as Parquet files."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from hta_sql import replay
from hta_sql.library import sqltext
from hta_sql.library.engine_settings import unordered
from hta_sql.library.objects import Library, SqlObject, load_library
from hta_sql.machine import temporary_folder
from hta_sql.replay.watch import UNWATCHED, Watch
from hta_sql.store.catalog.materialized_tables import (
    keys_of,
    materialized_view,
    missing_answers,
    missing_tables,
)
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import TABLES, Manifest, MaterializedTable

log = logging.getLogger(__name__)

OPTIONS = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"

REPLAYED = "replayed_rows"
"""Name under which the rows of a replay are registered in the engine while they are written."""

SMALL_BYTES = 100_000
"""Size [bytes] above which the answer for a run is materialized only if it is requested by name."""


@dataclass
class Request:
    """The answers to compute.

    Attributes:
        names: Analyses to materialize regardless of size; if empty, all whose answers are small.
        until: Time of the monotonic clock after which no further run is started [s].
    """

    names: Collection[str] = ()
    until: float = float("inf")


Failures = dict[tuple[str, str], str]
"""(Derived table or analysis, run) ─▶ error of the engine; not computed again by the same call."""


Todo = dict[str, list[SqlObject]]
"""Run ─▶ objects to compute, in order of computation."""


def to_compute(
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None,
    request: Request | None,
    *,
    without: Collection[str] = (),
    failed: Collection[tuple[str, str]] = (),
) -> Todo:
    """List derived tables (except ``without``) and requested answers that are not materialized.

    Those that failed are omitted.
    """
    wanted = missing_answers(manifest, library, runs, request.names) if request else []
    reads = any(library.reads_derived(about) for about, _ in wanted)
    tables = (
        []
        if request and request.names and not reads
        else missing_tables(manifest, library, runs, without)
    )
    missing = [*tables, *wanted]
    todo: Todo = {}
    for about, of_runs in missing:
        for run in of_runs:
            if (about.base_name, run) not in failed:
                todo.setdefault(run, []).append(about)
    return {run: todo[run] for run in sorted(todo)}


def run_computed(
    con: duckdb.DuckDBPyConnection,
    folder: StoreFolder,
    alone: Manifest,
    todo: list[SqlObject],
    request: Request | None,
    *,
    failed: Failures,
    watch: Watch = UNWATCHED,
) -> Iterator[MaterializedTable]:
    """Compute derived tables and answers of a run; yield each when its file is written.

    A table or an answer that the engine fails to compute is skipped with a warning.

    Args:
        con: A writable catalog that contains only the run.
        folder: The store.
        alone: Manifest that contains only the run.
        todo: Objects to compute.
        request: Which answers to materialize.
        failed: Failures, to which those of this run are added.
        watch: Limits of the computation.

    Raises:
        duckdb.FatalException: The engine cannot be used any longer.
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    (run,), library = alone.runs(), load_library()
    keys = keys_of(alone, library, {about.base_name for about in todo})
    largest = None if request and request.names else SMALL_BYTES
    for done, about in enumerate(todo):
        watch.report(f"{about.base_name} of {run}", done, len(todo))
        at = (about.base_name, run)
        asked = MaterializedTable(*at, keys[at], None, 0)
        try:
            if about in library.derived:
                kept = computed_table(con, folder, about, asked, watch)
                # Objects that are computed later read this table from its file.
                con.execute(materialized_view(library, about, [kept], f"{folder.root}/", [run]))
            else:
                rows = sqltext.rows_of_run(f"main.{about.name}")
                kept = _computed(con, folder, rows, asked, largest)
        except duckdb.FatalException:
            raise
        except duckdb.Error as error:
            watch.check()
            note_failure(failed, at, error)
        else:
            yield kept


def note_failure(failed: Failures, at: tuple[str, str], error: Exception) -> None:
    """Record that a derived table or an answer cannot be computed, with a warning."""
    failed[at] = str(error)
    log.warning("%s of run %s cannot be materialized: %s", *at, error)


def computed_table(
    con: duckdb.DuckDBPyConnection,
    folder: StoreFolder,
    about: SqlObject,
    asked: MaterializedTable,
    watch: Watch,
) -> MaterializedTable:
    """Compute the rows of a derived table for a run, and write them to the store."""
    with unordered(con), derived_rows(con, about, asked.run, watch) as select:
        return _computed(con, folder, select, asked)


@contextmanager
def derived_rows(
    con: duckdb.DuckDBPyConnection, about: SqlObject, run: str, watch: Watch = UNWATCHED
) -> Iterator[str]:
    """Yield a query for a derived table's rows of ``$run``; compute replays beforehand."""
    if about.base_name != replay.TABLE:
        yield sqltext.rows_of_run(f"derived.{about.name}")
        return
    from hta_sql.replay.rows import replay_rows  # noqa: PLC0415 - numpy, rarely needed

    con.register(REPLAYED, replay_rows(con, run, watch))
    try:
        yield sqltext.rows_but_of_run(REPLAYED)
    finally:
        con.unregister(REPLAYED)


def _computed(
    con: duckdb.DuckDBPyConnection,
    folder: StoreFolder,
    select: str,
    asked: MaterializedTable,
    largest: int | None = None,
) -> MaterializedTable:
    """Compute the rows of a run, and write them to the store unless there are none or too many."""
    with temporary_folder() as temporary:
        local = Path(temporary, "rows.parquet")
        bound = {"run": asked.run, "path": str(local)}
        ((rows,),) = con.execute(sqltext.copy_to_path(select, OPTIONS), bound).fetchall()
        size = local.stat().st_size if rows else 0
        log.info("Computed %s of run %s: %d rows.", asked.table, asked.run, rows)
        if not rows or (largest is not None and size > largest):
            return replace(asked, rows=int(rows), bytes=size)
        name = f"{uuid.uuid4().hex[:12]}.parquet"
        path = f"{TABLES}/{asked.table}/run={asked.run}/all/{name}"
        digest = file_digest(local)
        folder.put(local, path)
    return replace(asked, path=path, rows=int(rows), bytes=size, sha256=digest)
