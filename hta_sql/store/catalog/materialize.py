"""Materializes derived tables and answers: after an ingest, on demand, or before a query."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from hta_sql.errors import (
    HtaSqlError,
    ParameterError,
    QueryError,
    StoreError,
    StoreVersionError,
)
from hta_sql.library.answers import answers
from hta_sql.library.engine_settings import plan_quicker
from hta_sql.library.objects import Library, load_library
from hta_sql.machine import cpu_count, temporary_folder
from hta_sql.replay.watch import UNWATCHED, ComputationStoppedError, Watch
from hta_sql.store.catalog.build import (
    built_from,
    identity_of,
    open_for_computing,
    publish_manifest,
)
from hta_sql.store.catalog.columns import stored_files
from hta_sql.store.catalog.compute import (
    Failures,
    Request,
    note_failure,
    run_computed,
    to_compute,
)
from hta_sql.store.catalog.materialized_tables import ON_REQUEST, kept_tables, missing_tables
from hta_sql.store.catalog.template import Config
from hta_sql.store.disk.checksums import Checksums
from hta_sql.store.disk.file_checks import (
    faults_of,
    of_entries,
    of_materialized,
    size_faults,
    warn_of_faults,
)
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.disk.manifest import (
    CATALOG,
    Manifest,
    MaterializedTable,
    Store,
    manifest_bytes,
    parse_manifest,
    read_manifest,
)

log = logging.getLogger(__name__)

FEW_EVENTS = 500_000
"""Events of a run below which a second core saves no time and costs 20 % more CPU time."""

SOON_EVENTS = 5_000_000
"""Events of runs up to which their derived tables are computed before the runs are published.

The computation takes about a second, and avoids building a second catalog (0.1 s of CPU). More
events are published first, so that the runs survive if the ingest is interrupted.
"""

BATCH_S = 30
"""Time [s] after which results are published, and the lock is released for other writers."""


def publish(folder: StoreFolder, manifest: Manifest, *, derived: bool = True) -> None:
    """Compute missing derived tables, and replace the manifest and the catalog of a store.

    Clients that only read the catalog would otherwise compute the tables in each query. Tables that
    cannot be computed are skipped with a warning; with ``derived=False``, none is computed. Call
    only under the store's lock.
    """
    if not derived:
        publish_manifest(folder, manifest)
        return
    library = load_library()
    missing = missing_tables(manifest, library, without=ON_REQUEST)
    runs = {run for _, of_table in missing for run in of_table}
    events = sum(entry.event_count for entry in manifest.entries if entry.run in runs)
    computed = manifest
    if events > SOON_EVENTS:
        publish_manifest(folder, manifest)
    try:
        computed = _computed(folder, manifest, library, runs, without=ON_REQUEST)[1]
    except OSError as error:
        log.warning("Derived tables of %s are not materialized: %s", folder.root, error)
    except StoreVersionError as error:
        # No run is readable; building the catalog reports the error.
        log.debug("No run in %s is readable, so nothing is computed: %s", folder.root, error)
    if events <= SOON_EVENTS or computed is not manifest:
        publish_manifest(folder, computed)


def materialize_missing(
    folder: StoreFolder,
    library: Library,
    con: duckdb.DuckDBPyConnection,
    runs: Collection[str],
    without: Collection[str] = (),
    *,
    watch: Watch = UNWATCHED,
) -> bool:
    """Materialize missing derived tables of an open store; return whether it may have changed.

    If the store is locked by another writer, or if a computation fails, this is logged, and queries
    compute the missing tables.

    Args:
        folder: The store.
        library: Tables, macros and analyses.
        con: The open catalog. If the store was changed after it was opened, nothing is computed.
        runs: Runs whose tables are needed.
        without: Derived tables that are not needed.
        watch: Limits of the computation.

    Raises:
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    if not missing_tables(read_manifest(folder), library, runs, without):
        return False
    try:
        with store_lock(folder, 0):
            built = built_from(con)
            if built and built.serves(identity_of(folder, library)):
                materialize_derived(folder, library, runs, without, watch=watch)
    except (OSError, duckdb.Error, StoreError) as error:
        log.info("Derived tables of %s are not materialized: %s", folder.root, error)
        return False
    return True


def materialize_derived(
    folder: StoreFolder,
    library: Library,
    runs: Collection[str] | None = None,
    without: Collection[str] = ON_REQUEST,
    *,
    watch: Watch = UNWATCHED,
) -> list[MaterializedTable]:
    """Compute and return the derived tables that are not materialized yet.

    Tables that the engine fails to compute are skipped with a warning. Call only under the store's
    lock.

    Args:
        folder: The store.
        library: Tables, macros and analyses.
        runs: Runs to compute; None: all.
        without: Names of derived tables to exclude.
        watch: Limits of the computation.

    Raises:
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit; the
            store is unchanged.
    """
    return _keep(folder, library, runs, None, without, watch=watch)


def _keep(
    folder: StoreFolder,
    library: Library,
    runs: Collection[str] | None,
    request: Request | None,
    without: Collection[str] = (),
    *,
    failed: Failures | None = None,
    watch: Watch = UNWATCHED,
) -> list[MaterializedTable]:
    """Materialize derived tables and the requested answers, and publish them.

    Call only under the store's lock.
    """
    manifest = parse_manifest(manifest_bytes(folder), folder)
    check = faults_of if folder.local else size_faults
    damaged = {fault.file for fault in check(folder, of_materialized(manifest.materialized))}
    whole = manifest.without_materialized(damaged)
    found, keeping = _computed(
        folder, whole, library, runs, request, without=without, failed=failed, watch=watch
    )
    if damaged or keeping is not whole:
        publish_manifest(folder, keeping)
    return found


def _computed(
    folder: StoreFolder,
    manifest: Manifest,
    library: Library,
    runs: Collection[str] | None,
    request: Request | None = None,
    *,
    without: Collection[str] = (),
    failed: Failures | None = None,
    watch: Watch = UNWATCHED,
) -> tuple[list[MaterializedTable], Manifest]:
    """Compute missing tables and answers; return them, and the (possibly updated) manifest.

    Tables and answers that the engine fails to compute are added to ``failed``; those of other runs
    are computed.
    """
    failed = {} if failed is None else failed
    readable = stored_files(manifest, folder).manifest
    todo = to_compute(readable, library, runs, request, without=without, failed=failed)
    if not todo:
        return [], manifest
    found: list[MaterializedTable] = []
    for run, abouts in todo.items():
        if request and found and time.monotonic() > request.until:
            break
        # Restrict the manifest to one run; otherwise queries are planned over files of all runs.
        alone = readable.without([other for other in readable.runs() if other != run])
        # The checksum of a table that is computed from damaged files would be valid.
        files = of_entries(alone.entries)
        if folder.local and (
            faults := size_faults(folder, files) or Checksums(folder, files).faults()
        ):
            log.warning("Run %s is not materialized.", run)
            warn_of_faults(folder.root, faults)
            continue
        derived = [one for one in alone.materialized if one.table in library.derived_columns()]
        alone = replace(alone, materialized=derived)
        needed = library.computing if all(about in library.derived for about in abouts) else library
        try:
            with _opened(folder, alone, needed, watch) as con, watch.watching(con):
                # Keeps those before an error.
                found.extend(
                    run_computed(con, folder, alone, abouts, request, failed=failed, watch=watch)
                )
        except duckdb.Error as error:  # the run cannot be opened, or the engine cannot be used
            done = {(one.table, one.run) for one in found} | failed.keys()
            for about in abouts:
                if (about.base_name, run) not in done:
                    note_failure(failed, (about.base_name, run), error)
    kept = kept_tables(readable, library) | {(one.table, one.run): one for one in found}
    return found, replace(manifest, materialized=[kept[at] for at in sorted(kept)])


@contextmanager
def _opened(
    folder: StoreFolder, manifest: Manifest, library: Library, watch: Watch
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a temporary catalog in which derived tables and answers are computed."""
    with temporary_folder() as temporary:
        events = sum(entry.event_count for entry in manifest.entries)
        threads = cpu_count() if events > FEW_EVENTS else 1
        limits: Config = {"threads": threads, "memory_limit": watch.engine_limit}
        # As for open stores: the engine underestimates the row counts of most query stages.
        limits |= {"asof_loop_join_threshold": 0, "temp_directory": temporary}
        target = Path(temporary, CATALOG)
        with open_for_computing(target, folder, manifest, library, limits) as con:
            plan_quicker(con)
            yield con


def materialize_for(
    store: Store, query: str, library: Library | None = None, watch: Watch = UNWATCHED
) -> None:
    """Materialize the derived tables that a query reads, before the store is opened read-only.

    The engine recomputes a table that is not materialized at every reference, which may take
    minutes. It still does so if the tables cannot be materialized.

    Raises:
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    known = library or load_library()
    if known.asks_derived(query):
        materialize_if_free(store, ON_REQUEST - known.derived_in(query), watch)


def materialize_if_free(
    store: Store, without: Collection[str] = ON_REQUEST, watch: Watch = UNWATCHED
) -> None:
    """Materialize the derived tables, unless the store is locked or read-only.

    Raises:
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    try:
        _materialize(store, None, None, 0, without, watch=watch)
    except ComputationStoppedError:
        raise
    except (OSError, HtaSqlError) as error:
        log.info("Derived tables of %s are not materialized: %s", store, error)


def materialize(
    store: Store,
    runs: Collection[str] | None = None,
    *,
    lock_timeout: float = LOCK_TIMEOUT_S,
    failed: Failures | None = None,
    watch: Watch = UNWATCHED,
) -> list[MaterializedTable]:
    """Compute and return the derived tables that are not materialized yet.

    Args:
        store: The store.
        runs: Runs to compute; None: all.
        lock_timeout: Time to wait for an ingest that is writing the store [s].
        failed: Failures are added to it; each is also logged as a warning.
        watch: Limits of the computation.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreError: The lock was not released within the timeout.
        QueryError: The catalog cannot be built; the store is unchanged.
    """
    return _materialize(store, runs, None, lock_timeout, failed=failed, watch=watch)


def materialize_answers(
    store: Store,
    names: Collection[str] = (),
    runs: Collection[str] | None = None,
    *,
    lock_timeout: float = LOCK_TIMEOUT_S,
    failed: Failures | None = None,
    watch: Watch = UNWATCHED,
) -> list[MaterializedTable]:
    """Materialize the answers of analyses with default arguments; return the new answers.

    Only answers that can be partitioned by run are materialized. Every 30 s, results are published
    and the lock is released for other writers. Answers and derived tables that the engine fails to
    compute are skipped with a warning.

    Args:
        store: The store.
        names: Analyses and derived tables. If empty, all derived tables, and all analyses whose
            answer for a run is at most ``compute.SMALL_BYTES``, as determined once for each run.
        runs: Runs to compute; None: all.
        lock_timeout: Time to wait for another writer before each batch [s].
        failed: Failures are added to it.
        watch: Limits of the computation.

    Raises:
        AnalysisNotFoundError: An analysis does not exist.
        ParameterError: The answer of an analysis cannot be partitioned by run.
        StoreNotFoundError: There is no store at that path.
        StoreError: The lock was not released within the timeout.
        QueryError: The catalog cannot be built.
    """
    library = load_library()
    derived = {about.base_name for about in library.derived}
    for name in set(names) - derived:
        if library.find(name).name not in {about.name for about in answers(library).values()}:
            raise ParameterError(
                f"The result of {name!r} cannot be materialized: the analysis needs parameters, or more "
                f"than one run. Omit the name to materialize all {len(answers(library))} analyses for which this is possible."
            )
    wanted = {library.find(name).base_name for name in set(names) - derived}
    failed = {} if failed is None else failed
    if names and not wanted:
        return materialize(store, runs, lock_timeout=lock_timeout, failed=failed, watch=watch)
    request = Request(wanted)
    found: list[MaterializedTable] = []
    while True:
        request.until = time.monotonic() + BATCH_S
        batch = _materialize(store, runs, request, lock_timeout, failed=failed, watch=watch)
        found += batch
        if not batch:
            return found


def _materialize(
    store: Store,
    runs: Collection[str] | None,
    request: Request | None,
    lock_timeout: float,
    without: Collection[str] = (),
    *,
    failed: Failures | None = None,
    watch: Watch = UNWATCHED,
) -> list[MaterializedTable]:
    folder = store_folder(store)
    manifest_bytes(folder)
    with store_lock(folder, lock_timeout):
        try:
            library = load_library()
            return _keep(folder, library, runs, request, without, failed=failed, watch=watch)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
