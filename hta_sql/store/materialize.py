"""Computes the derived tables of a store: at the end of an ingest, on demand, by the first question."""

from __future__ import annotations

import logging
import tempfile
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import duckdb

from hta_sql.errors import HtaSqlError, QueryError
from hta_sql.library.objects import Library, load_library
from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.store import LOCK_TIMEOUT_S
from hta_sql.store.catalog import open_for_computing, publish_manifest
from hta_sql.store.columns import stored_files
from hta_sql.store.derived import computed, missing_tables
from hta_sql.store.files import StoreFolder, store_folder
from hta_sql.store.locks import store_lock
from hta_sql.store.manifest import (
    CATALOG,
    KeptTable,
    Manifest,
    Store,
    manifest_bytes,
    parse_manifest,
)
from hta_sql.store.template import Config

log = logging.getLogger(__name__)

DEAR_EVENTS = 50_000
"""Events of a run from which on an ingest computes its derived tables: about half a second."""


def publish(folder: StoreFolder, manifest: Manifest) -> None:
    """Replace the manifest and the catalog of a store, and compute what is dear to compute.

    Under the store's lock. What cannot be computed now, or is quickly computed, is computed by
    the first question.
    """
    publish_manifest(folder, manifest)
    sizes: dict[str, list[int]] = defaultdict(list)
    for entry in manifest.entries:
        sizes[entry.run].append(entry.event_count)
    dear = {run for run, counts in sizes.items() if len(counts) > 1 and sum(counts) >= DEAR_EVENTS}
    if not dear:
        return
    try:
        keep_derived(folder, load_library(), dear)
    except (OSError, duckdb.Error) as error:
        log.warning("Derived tables of %s are not computed yet: %s", folder.root, error)


def keep_derived(
    folder: StoreFolder, library: Library, runs: Collection[str] | None = None
) -> list[KeptTable]:
    """Compute the derived tables that are not kept yet; returns them.

    Under the store's lock.

    Args:
        folder: The store.
        library: Tables, macros and analyses.
        runs: Runs to compute; None: all.

    Raises:
        duckdb.Error: The engine failed; the store is as before.
    """
    manifest = parse_manifest(manifest_bytes(folder), folder)
    readable = stored_files(manifest, folder).manifest
    if not missing_tables(readable, library, runs):
        return []
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary, CATALOG)
        limits: Config = {"threads": cpu_count(), "memory_limit": duckdb_memory_limit()}
        # Each analysis orders its rows; to keep their order here would take twice the memory.
        limits |= {"preserve_insertion_order": False, "temp_directory": temporary}
        with open_for_computing(target, folder, readable, library, limits) as con:
            now = computed(con, folder, readable, library, runs)
    publish_manifest(folder, replace(manifest, kept=now.kept))
    return [kept for kept in now.kept if kept not in manifest.kept]


def forget(folder: StoreFolder, paths: Collection[str]) -> None:
    """Keep derived tables no longer whose files are broken: the next question computes them.

    Under the store's lock.
    """
    manifest = parse_manifest(manifest_bytes(folder), folder)
    publish_manifest(folder, manifest.without_kept(paths))


def materialize_for(store: Store, query: str, library: Library | None = None) -> None:
    """Compute what a query reads of derived tables, before the store is opened for reading only.

    Without them the engine computes them anew in each place that names them, which may take
    minutes. Where they cannot be kept it does so still.
    """
    if (library or load_library()).asks_derived(query):
        try:
            materialize(store, lock_timeout=0)
        except (OSError, HtaSqlError) as error:
            log.info("Derived tables of %s are not kept: %s", store, error)


def materialize(
    store: Store, runs: Collection[str] | None = None, *, lock_timeout: float = LOCK_TIMEOUT_S
) -> list[KeptTable]:
    """Compute the derived tables that a store does not keep yet; returns them.

    Args:
        store: The store.
        runs: Runs to compute; None: all.
        lock_timeout: Seconds to wait for an ingest that is writing it.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreError: An ingest is writing it, for longer than we wait.
        QueryError: The engine failed; the store is as before.
    """
    folder = store_folder(store)
    manifest_bytes(folder)
    with store_lock(folder, lock_timeout):
        try:
            return keep_derived(folder, load_library(), runs)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
