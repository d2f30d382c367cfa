"""Changes of the runs of a store: their tags and names, and which of them there are.

Each is one replaced manifest, under the store's lock: a reader sees the store of before or of after.
Files go after the manifest that no longer names them. Whoever is killed in between leaves files that
nothing names, and the next one who writes the store removes them.
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
from hta_sql.store.disk.manifest import TABLES, Manifest, RankEntry, Store, in_order
from hta_sql.store.disk.orphaned_files import remove_orphaned_files
from hta_sql.store.disk.run_names import check_run_name
from hta_sql.store.disk.shard_files import read_shards, run_of_shard

log = logging.getLogger(__name__)


def remove_runs(
    store: Store, runs: Collection[str] | str, *, lock_timeout: float = LOCK_TIMEOUT_S
) -> int:
    """Remove runs from a store, and their files; returns how many bytes those had.

    A store that is open here or in another process goes on with the runs that are left: its next
    question that needs a removed file is answered by the store of now.

    The arguments and errors are those of :func:`tag_runs`.

    Raises:
        StoreError: One of them is a baseline by the file of baselines in the store.
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
        _remove_files(folder, left, runs)
    return sum(file["bytes"] for entry in gone for file in entry.files.values())


def rename_run(store: Store, run: str, name: str, *, lock_timeout: float = LOCK_TIMEOUT_S) -> None:
    """Give a run another name.

    The path of a file says of which run it is, and files do not change. So its files get new names:
    second links to them, which take no space, or copies where there are no links, as at URLs; the
    old names go when the manifest has the new ones. What was computed of the run is computed anew.

    Args:
        store: Folder of the store, or its fsspec URL.
        run: The run.
        name: Its new name.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        ParameterError: A name that cannot be one.
        RankError: There is no such run.
        StoreNotFoundError: There is no store at that path.
        StoreError: There is a run of the new name already; the run is a baseline by the file of
            baselines in the store; or another process is writing the store.
    """
    check_run_name(name)
    with changing_runs(store, [run], lock_timeout) as (folder, manifest):
        _refuse_baselines(folder, [run], "renamed")
        if name in manifest.runs():
            raise StoreError(f"{folder.root!r} has a run {name!r} already.")
        # What a killed one of this name has left would be in the way.
        remove_orphaned_files(folder, manifest)
        entries = [_renamed(e, name) if e.run == run else e for e in manifest.entries]
        for entry, other in zip(manifest.entries, entries, strict=True):
            for table, file in entry.files.items() if entry.run == run else ():
                folder.copy(file["path"], other.files[table]["path"])
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
        folder.settle(file["path"] for e in entries if e.run == name for file in e.files.values())
        publish(folder, now)
        _remove_files(folder, now, [run])


def _refuse_baselines(folder: StoreFolder, runs: Collection[str], what: str) -> None:
    """Raise for what somebody compares others with."""
    for run, name in baseline_runs(folder).items():
        if run in runs:
            raise StoreError(
                f"Run {run!r} of {folder.root!r} is the baseline {name!r}, and is not {what}. If "
                f"it is one no longer: hta-sql baseline remove {name} {folder.root}"
            )


def _renamed(entry: RankEntry, name: str) -> RankEntry:
    """Return an entry as one of another run, with the paths that its files will have."""
    files = {
        table: {**file, "path": file["path"].replace(f"/run={entry.run}/", f"/run={name}/", 1)}
        for table, file in entry.files.items()
    }
    return replace(entry, run=name, files=files)


def _remove_files(folder: StoreFolder, manifest: Manifest, runs: Collection[str]) -> None:
    """Delete what the manifest names no longer, and the empty folders of runs that are gone."""
    remove_orphaned_files(folder, manifest)
    # A job may be about to write into those of its run.
    for run in set(runs) - {shard.run for shard in read_shards(folder)}:
        for table in (*stored_columns(), *kept_columns(load_library())):
            folder.remove_empty(f"{TABLES}/{table}/run={run}")
