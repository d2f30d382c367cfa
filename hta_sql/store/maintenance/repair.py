"""Repairs a store: rebuilds computed files, quarantines damaged ranks, keeps other runs usable.

The catalog and materialized tables are rebuilt. A rank with damaged files is quarantined, and its
trace is ingested again if the trace still exists unchanged. Until then, queries exclude the run
with a warning. Damaged files are not deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from hta_sql.errors import StoreDamagedError, StoreNotFoundError
from hta_sql.store.catalog.build import copy_of_manifest, publish_manifest
from hta_sql.store.catalog.user_analyses import OWN
from hta_sql.store.disk.file_checks import Fault
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.disk.manifest import (
    CATALOG,
    MANIFEST,
    Manifest,
    Store,
    file_paths,
    manifest_bytes,
    parse_manifest,
    read_manifest,
)
from hta_sql.store.disk.shard_files import shards_at, write_shard
from hta_sql.store.maintenance.verify import verify_store

ASIDE = ".damaged"
"""File name suffix of quarantined files, for inspection; nothing reads them."""

ReadAgain = Callable[
    [StoreFolder, Manifest], tuple[list[tuple[str, int]], dict[tuple[str, int], str]]
]
"""Ingests quarantined ranks again. Returns the ingested ranks, and for each other rank a reason."""


@dataclass(frozen=True)
class Repaired:
    """Result of a repair."""

    faults: list[Fault] = field(default_factory=list)
    """Faults that were found."""
    read_again: list[tuple[str, int]] = field(default_factory=list)
    """(Run, rank) pairs whose traces were ingested again."""
    aside: dict[tuple[str, int], str] = field(default_factory=dict)
    """Quarantined (run, rank) ─▶ reason why the trace was not ingested again."""


def repair(
    store: Store,
    read_again: ReadAgain,
    *,
    deep: bool = False,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> Repaired:
    """Repair the faults that :func:`~hta_sql.store.maintenance.verify.verify_store` finds.

    Args:
        store: Folder of the store, or its fsspec URL.
        read_again: Ingests the traces of quarantined ranks; a callback, because ingestion is a
            higher layer.
        deep: Follow every link between events.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreDamagedError: The manifest is damaged, and the catalog contains no copy of it.
        StoreError: The lock was not released within ``lock_timeout``.
    """
    folder = store_folder(store)
    if not folder.sizes([MANIFEST, CATALOG]):
        manifest_bytes(folder)  # raises before the lock creates a folder
    with store_lock(folder, lock_timeout):
        found = _with_manifest(folder)
        found += verify_store(folder, deep=deep).faults
        manifest = _without(read_manifest(folder), found)
        _mend_shards(folder, found)
        if any(fault.file == OWN for fault in found):
            _quarantine_file(folder, OWN)
        if found:
            publish_manifest(folder, manifest)
        read, why = read_again(folder, manifest)
    return Repaired(found, read, why)


def _with_manifest(folder: StoreFolder) -> list[Fault]:
    """Restore a missing or damaged manifest from the catalog; return the faults of the manifest."""
    try:
        parse_manifest(manifest_bytes(folder), folder)
    except (StoreDamagedError, StoreNotFoundError) as error:
        content = copy_of_manifest(folder)
        if content is None:
            raise StoreDamagedError(
                f"{folder.path(MANIFEST)!r} is damaged or missing, and the catalog has no copy "
                "of it. Ingest the traces into a new store."
            ) from error
        parse_manifest(content, folder)
        if folder.sizes([MANIFEST]):
            folder.copy(MANIFEST, f"{MANIFEST}{ASIDE}")
        folder.replace(MANIFEST, content)
        return [Fault(MANIFEST, "manifest", str(error))]
    return []


def _without(manifest: Manifest, faults: Iterable[Fault]) -> Manifest:
    """Remove damaged files from a manifest: quarantine ranks, drop materialized tables."""
    files = {fault.file for fault in faults}
    damaged = [entry for entry in manifest.entries if files & file_paths([entry])]
    computed = {one.path for one in manifest.materialized if one.path in files}
    return manifest.without_materialized({path for path in computed if path}).set_aside(damaged)


def _mend_shards(folder: StoreFolder, faults: Iterable[Fault]) -> None:
    """Remove damaged ranks from shards; the next run of the shard's job reads these ranks again."""
    files = {fault.file for fault in faults}
    for shard in shards_at(folder)[0]:
        whole = [entry for entry in shard.entries if not files & file_paths([entry])]
        if len(whole) < len(shard.entries):
            write_shard(folder, replace(shard, entries=whole, complete=False))
    for fault in faults:
        if fault.kind == "shard":
            _quarantine_file(folder, fault.file)


def _quarantine_file(folder: StoreFolder, name: str) -> None:
    """Rename a file to a name that nothing reads."""
    folder.remove([f"{name}{ASIDE}"])
    folder.copy(name, f"{name}{ASIDE}")
    folder.remove([name])
