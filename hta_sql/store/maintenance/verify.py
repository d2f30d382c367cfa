"""Verifies a store: compares all of its files with the manifest, read-only.

Opening a store checks the sizes of its files, and the first query hashes the small ones. Verifying
a store reads all contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb

from hta_sql.errors import StoreDamagedError, StoreError, StoreVersionError
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import query_sql
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.build import build_aside, built_from, identity_of
from hta_sql.store.catalog.columns import stored_files, viewed
from hta_sql.store.catalog.user_analyses import OWN, user_texts
from hta_sql.store.disk import file_checks
from hta_sql.store.disk.file_checks import Fault, faults_of, files_of, of_entries
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.manifest import (
    AGAIN,
    CATALOG,
    MANIFEST,
    Manifest,
    Store,
    manifest_bytes,
    parse_manifest,
)
from hta_sql.store.disk.shard_files import shards_at

ATTEMPTS = 5
"""Number of attempts to verify a store that other processes write meanwhile."""

LINKED = (
    *("cpu_ops", "runtime_calls", "annotations", "python_calls", "steps"),
    *("memory_events", "gpu_ops"),
)
"""The tables that sql/queries/dangling_links.sql reads."""


@dataclass(frozen=True)
class Verified:
    """Result of a verification: what was checked, and the faults found."""

    store: str
    files: int
    """Number of Parquet files."""
    bytes: int
    deep: bool
    faults: list[Fault] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON-serializable dict."""
        return asdict(self) | {"is_sound": not self.faults}


def verify_store(store: Store, *, deep: bool = False) -> Verified:
    """Compare all files of a store with its manifest.

    Args:
        store: Folder of the store, or its fsspec URL.
        deep: Follow every link between events.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreError: The store changed during every attempt.
    """
    folder = store_folder(store)
    if folder.sizes([MANIFEST, CATALOG]).keys() == {CATALOG}:
        return Verified(folder.root, 0, 0, deep, [Fault(MANIFEST, "manifest", "it is missing")])
    for _ in range(ATTEMPTS):
        before = manifest_bytes(folder)
        try:
            manifest = parse_manifest(before, folder)
        except (StoreDamagedError, StoreVersionError) as error:
            return Verified(folder.root, 0, 0, deep, [Fault(MANIFEST, "manifest", str(error))])
        verified = _verified(folder, manifest, deep=deep)
        if not verified.faults or manifest_bytes(folder) == before:
            return verified
    raise StoreError(f"{folder.root!r} changed during every attempt to verify it; try again later.")


def remedies(root: str, faults: Iterable[Fault]) -> list[str]:
    """Return a sentence for each command that restores a store.

    Args:
        root: Location of the store.
        faults: Faults that were found in the store.
    """
    faults = list(faults)
    kinds = {fault.kind for fault in faults}
    found = file_checks.remedies(root, [fault for fault in faults if fault.kind != "shard"])
    if "manifest" in kinds:
        found.append(AGAIN)
    if "shard" in kinds:
        found.append(
            "Run the job of the shard again: "
            f"hta-sql ingest TRACES -o {root} --run RUN --shard I/N --force"
        )
    if "catalog" in kinds:
        found.append(f"Build the catalog again: hta-sql catalog {root}")
    return found


def _verified(folder: StoreFolder, manifest: Manifest, *, deep: bool) -> Verified:
    files = files_of(manifest)
    shards, damaged = shards_at(folder)
    found = faults_of(folder, files)
    found += [
        Fault(path, "shard", f"it is not a shard that this version can publish: {why}")
        for path, why in sorted(damaged.items())
    ]
    unpublished = faults_of(folder, of_entries(e for s in shards for e in s.entries))
    found += [replace(fault, kind="shard") for fault in unpublished]
    try:
        user_texts(folder)
    except FileNotFoundError:
        pass
    except StoreDamagedError as error:
        found.append(Fault(OWN, "analyses", str(error)))
    if deep and not found:
        found += dangling(folder, manifest)
    found += _catalog_faults(folder, compare=not found)
    return Verified(folder.root, len(files), sum(file.bytes for file in files), deep, found)


def _catalog_faults(folder: StoreFolder, *, compare: bool) -> Iterator[Fault]:
    """Read the whole catalog, and compare it with a newly built catalog."""
    library = load_library()
    with temporary_folder() as temporary:
        copied, built = Path(temporary, "copied.duckdb"), Path(temporary, "built.duckdb")
        try:
            copied.write_bytes(folder.read(CATALOG))
            with duckdb.connect(str(copied), read_only=True) as con:
                identity = built_from(con)
                fits = identity is not None and identity.serves(identity_of(folder, library))
                contents = _contents(con) if fits else []
        except FileNotFoundError:
            yield Fault(CATALOG, "catalog", "it is missing")
            return
        except (OSError, duckdb.Error) as error:
            yield Fault(CATALOG, "catalog", f"it cannot be read: {error}")
            return
        if not fits:
            yield Fault(
                CATALOG, "catalog", "it was built for another manifest, location or version"
            )
        elif compare:
            build_aside(built, folder)
            with duckdb.connect(str(built), read_only=True) as con:
                if _contents(con) != contents:
                    yield Fault(CATALOG, "catalog", "its contents do not match the manifest")


def _contents(con: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return con.execute(query_sql("catalog_contents")).fetchall()


def dangling(folder: StoreFolder, manifest: Manifest) -> Iterator[Fault]:
    """Find dangling links between events, run by run."""
    files = stored_files(manifest, folder)
    for run in files.manifest.runs():
        others = [other for other in manifest.runs() if other != run]
        alone = stored_files(manifest.without(others), folder)
        with viewed(alone, folder, LINKED) as con:
            rows = con.execute(query_sql("dangling_links")).fetchall()
        for _, rank, table, link, count in rows:
            paths = [e.files[table]["path"] for e in alone.manifest.entries if e.rank == rank]
            yield Fault(
                paths[0], "links", f"{link} refers to {count:,} missing events", run, (rank,)
            )
