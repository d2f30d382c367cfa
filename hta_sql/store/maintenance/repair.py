"""Mends a store: what can be made again is, what cannot is set aside, so that the rest answers.

The catalog and what was computed of runs are built anew. A rank whose files are damaged is taken out
of its run, and read again where its trace is there and is the one that was read; until then the run is
left out, with a warning. No file is deleted for it.
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
    RankEntry,
    Store,
    manifest_bytes,
    parse_manifest,
    read_manifest,
)
from hta_sql.store.disk.shard_files import shards_at, write_shard
from hta_sql.store.maintenance.verify import verify_store

ASIDE = ".damaged"
"""End of the name of what is kept for who wants to look at it; nothing reads it."""

ReadAgain = Callable[
    [StoreFolder, Manifest], tuple[list[tuple[str, int]], dict[tuple[str, int], str]]
]
"""Reads the traces of quarantined ranks again: returns what it read, and why it did not read the others."""


@dataclass(frozen=True)
class Repaired:
    """What was done."""

    faults: list[Fault] = field(default_factory=list)
    """What was found."""
    read_again: list[tuple[str, int]] = field(default_factory=list)
    """(Run, rank) whose traces were read again."""
    aside: dict[tuple[str, int], str] = field(default_factory=dict)
    """(Run, rank) that are set aside ─▶ why their traces were not read again."""


def repair(
    store: Store,
    read_again: ReadAgain,
    *,
    deep: bool = False,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> Repaired:
    """Mend what a look at all files of a store finds; see :func:`hta_sql.store.maintenance.verify.verify_store`.

    Args:
        store: Folder of the store, or its fsspec URL.
        read_again: Reads the traces of quarantined ranks: ingestion stands above the store.
        deep: Follow every link between events.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreDamagedError: Its manifest is damaged, and its catalog has no copy of it.
        StoreError: Another process is writing it for longer than ``lock_timeout``.
    """
    folder = store_folder(store)
    if not folder.sizes([MANIFEST, CATALOG]):
        manifest_bytes(folder)  # else the lock would make a folder where there is none
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
    """Bring a damaged manifest back from the catalog; returns what was wrong with it."""
    try:
        parse_manifest(manifest_bytes(folder), folder)
    except (StoreDamagedError, StoreNotFoundError) as error:
        content = copy_of_manifest(folder)
        if content is None:
            raise StoreDamagedError(
                f"{folder.path(MANIFEST)!r} is damaged or gone, and the catalog has no copy of it. "
                "Ingest the traces into a new store."
            ) from error
        parse_manifest(content, folder)
        if folder.sizes([MANIFEST]):
            folder.copy(MANIFEST, f"{MANIFEST}{ASIDE}")
        folder.replace(MANIFEST, content)
        return [Fault(MANIFEST, "manifest", str(error))]
    return []


def _without(manifest: Manifest, faults: Iterable[Fault]) -> Manifest:
    """Take what is damaged out of a manifest."""
    files = {fault.file for fault in faults}
    damaged = [entry for entry in manifest.entries if files.intersection(_paths(entry))]
    computed = {one.path for one in manifest.materialized if one.path in files}
    return manifest.without_materialized({path for path in computed if path}).set_aside(damaged)


def _paths(entry: RankEntry) -> list[str]:
    return [file["path"] for file in entry.files.values()]


def _mend_shards(folder: StoreFolder, faults: Iterable[Fault]) -> None:
    """Leave damaged ranks out of shards: their jobs, run again, read those."""
    files = {fault.file for fault in faults}
    for shard in shards_at(folder)[0]:
        whole = [entry for entry in shard.entries if not files.intersection(_paths(entry))]
        if len(whole) < len(shard.entries):
            write_shard(folder, replace(shard, entries=whole, complete=False))
    for fault in faults:
        if fault.kind == "shard":
            _quarantine_file(folder, fault.file)


def _quarantine_file(folder: StoreFolder, name: str) -> None:
    """Give a file a name that nothing reads."""
    folder.remove([f"{name}{ASIDE}"])
    folder.copy(name, f"{name}{ASIDE}")
    folder.remove([name])
