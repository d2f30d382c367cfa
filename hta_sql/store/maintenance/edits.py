"""Removes and renames the runs of a store.

Each edit atomically replaces the manifest under the store's lock, so readers see the state before
or after the edit. Files are deleted after the new manifest is in place. If the process is killed in
between, the files are orphaned, and the next writer deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from hta_sql.errors import StoreError
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import stored_columns
from hta_sql.store.catalog.build import publish_manifest
from hta_sql.store.catalog.materialize import publish
from hta_sql.store.catalog.materialized_tables import kept_columns
from hta_sql.store.catalog.run_tags import changing_runs
from hta_sql.store.disk.baselines import baseline_runs
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.store.disk.manifest import (
    TABLES,
    RankEntry,
    Store,
    file_bytes,
    file_paths,
    in_order,
    read_manifest,
)
from hta_sql.store.disk.orphaned_files import remove_orphaned_files
from hta_sql.store.disk.run_names import check_run_name
from hta_sql.store.disk.shard_files import read_shards, run_of_shard

log = logging.getLogger(__name__)


def remove_runs(
    store: Store, runs: Collection[str] | str, *, lock_timeout: float = LOCK_TIMEOUT_S
) -> int:
    """Remove runs and their files from a store; return the total size of these files [bytes].

    A store that is open in this or another process remains usable. The next query that needs a
    removed file runs on the current version of the store.

    For the arguments and the other errors, see :func:`tag_runs`.

    Raises:
        StoreError: A run is a baseline according to the store's baselines file.
    """
    runs = [runs] if isinstance(runs, str) else runs
    with changing_runs(store, runs, lock_timeout) as (folder, manifest):
        _refuse_baselines(folder, runs, "removed")
        gone = [entry for entry in manifest.entries if entry.run in runs]
        left = replace(
            manifest.without(runs),
            materialized=[kept for kept in manifest.materialized if kept.run not in runs],
            tags={run: tags for run, tags in manifest.tags.items() if run not in runs},
            published={
                shard: digest
                for shard, digest in manifest.published.items()
                if run_of_shard(shard) not in runs
            },
        )
        publish_manifest(folder, left)
        _remove_files(folder, runs)
    return file_bytes(gone) + sum(kept.bytes for kept in manifest.materialized if kept.run in runs)


def rename_run(store: Store, run: str, name: str, *, lock_timeout: float = LOCK_TIMEOUT_S) -> None:
    """Rename a run.

    The path of a file contains the name of its run, and files are immutable. Therefore the files
    are hard-linked under new names, which takes no disk space, or copied if links are not
    supported, as at URLs. The old names are deleted after the manifest is replaced. Materialized
    tables of the run are recomputed.

    Args:
        store: Folder of the store, or its fsspec URL.
        run: The run.
        name: New name of the run.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        ParameterError: The new name is not valid.
        RankError: There is no such run.
        StoreNotFoundError: There is no store at that path.
        StoreError: A run with the new name already exists, the run is a baseline according to the
            store's baselines file, or the lock was not released in time.
    """
    check_run_name(name)
    with changing_runs(store, [run], lock_timeout) as (folder, manifest):
        _refuse_baselines(folder, [run], "renamed")
        if name in manifest.runs():
            raise StoreError(f"{folder.root!r} already has a run {name!r}.")
        # A killed rename to the same name leaves orphaned files under the new paths.
        remove_orphaned_files(folder, manifest)
        entries = [_renamed(e, name) if e.run == run else e for e in manifest.entries]
        of_run = [entry for entry in manifest.entries if entry.run == run]
        copies = {path: _renamed_path(path, run, name) for path in file_paths(of_run)}
        for path, copy in copies.items():
            folder.copy(path, copy)
        now = replace(
            manifest,
            entries=sorted(entries, key=in_order),
            materialized=[kept for kept in manifest.materialized if kept.run != run],
            tags={name if of == run else of: tags for of, tags in manifest.tags.items()},
            published={
                f"{name}{shard.removeprefix(run)}" if run_of_shard(shard) == run else shard: digest
                for shard, digest in manifest.published.items()
            },
        )
        folder.settle(copies.values())
        publish(folder, now)
        _remove_files(folder, [run])


def _refuse_baselines(folder: StoreFolder, runs: Collection[str], what: str) -> None:
    """Raise if a run is a baseline."""
    for run, name in baseline_runs(folder).items():
        if run in runs:
            raise StoreError(
                f"Run {run!r} of {folder.root!r} is the baseline {name!r}, so it was not {what}. "
                f"If the run is no longer a baseline: hta-sql baseline remove {name} {folder.root}"
            )


def _renamed(entry: RankEntry, name: str) -> RankEntry:
    """Return an entry with the new run name and the new paths of its files."""
    files = {
        table: {**file, "path": _renamed_path(file["path"], entry.run, name)}
        for table, file in entry.files.items()
    }
    return replace(entry, run=name, files=files)


def _renamed_path(path: str, run: str, name: str) -> str:
    return path.replace(f"/run={run}/", f"/run={name}/", 1)


def _remove_files(folder: StoreFolder, runs: Collection[str]) -> None:
    """Delete orphaned files, and the empty folders of removed runs."""
    # The published manifest also references the derived tables that publishing has computed.
    remove_orphaned_files(folder, read_manifest(folder))
    # A running shard job may be about to write into the folders of its run.
    for run in set(runs) - {shard.run for shard in read_shards(folder)}:
        for table in (*stored_columns(), *kept_columns(load_library())):
            folder.remove_empty(f"{TABLES}/{table}/run={run}")
