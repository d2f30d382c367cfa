"""An open catalog of a store, with its ranks, materialized answers and engine settings."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from hta_sql.errors import StoreDamagedError, StoreError, StoreVersionError
from hta_sql.library.engine_settings import cache_parquet_metadata, plan_quicker
from hta_sql.library.objects import Library
from hta_sql.library.sql_files import query_sql
from hta_sql.store.catalog.build import Identity, identity_of, write_catalog
from hta_sql.store.disk.checksums import Checksums
from hta_sql.store.disk.file_checks import Expected, Fault, files_of, size_faults
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import CATALOG, digest_of, manifest_bytes, parse_manifest
from hta_sql.store.query.execution import Size

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checked:
    """The files of a store when it was opened."""

    files: list[Expected]
    """The files that queries may read."""
    faults: list[Fault]
    """Missing and damaged files; their runs, or derived tables, are left out."""


@dataclass(frozen=True)
class Opened:
    """An open catalog, with the facts that were read from it when it was opened."""

    con: duckdb.DuckDBPyConnection
    catalog: Path
    ranks: list[Size]
    """Run, rank and number of events of each rank."""
    changed: list[str]
    """Runs whose definitions have changed since they were ingested."""
    materialized: dict[str, set[str]]
    """Analysis ─▶ runs whose materialized answer is up to date."""
    checked: Checked
    checksums: Checksums


def checked_files(
    content: bytes, folder: StoreFolder, damaged: Iterable[Fault], *, sizes: bool
) -> Checked:
    """Return the files of a store, and those that are missing or damaged.

    Args:
        content: The manifest.
        folder: The store.
        damaged: Files that are known to be damaged.
        sizes: Compare the sizes of all files with the manifest.
    """
    manifest = parse_manifest(content, folder)
    files, faults = files_of(manifest), list(damaged)
    if sizes:
        faults += size_faults(folder, files)
    if faults:
        files = files_of(manifest.without_files({fault.file for fault in faults}))
    return Checked(files, faults)


def is_of_file(error: duckdb.Error, folder: StoreFolder) -> bool:
    """Return whether an engine error is about a Parquet file of a store, or from a decoder.

    A query may name files itself; if it reads several tables as one, no file is damaged.
    """
    text = str(error)
    is_there = any(root in text for root in folder.spellings())
    is_named = is_there and ".parquet" in text and "union_by_name" not in text
    return type(error) is duckdb.Error or is_named


def is_of_database(error: duckdb.Error) -> bool:
    """Return whether an engine error comes from a corrupt catalog file, not from Parquet."""
    if isinstance(error, (duckdb.IOException, duckdb.SerializationException)):
        return CATALOG in str(error)
    return "Corrupt database" in str(error)


def ranks_of(con: duckdb.DuckDBPyConnection) -> tuple[list[Size], list[str]]:
    """Return the sorted ranks of a catalog, and the runs whose definitions have changed."""
    rows = con.execute(query_sql("catalog", "ranks")).fetchall()
    counts: dict[tuple[str, int], int] = defaultdict(int)  # summed over the spans of a rank
    for run, rank, events, _ in rows:
        counts[run, rank] += events or 0
    ranks = [(run, rank, counts[run, rank]) for run, rank in sorted(counts)]
    return ranks, sorted({run for run, *_, is_changed in rows if is_changed})


def kept_of(con: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Return the analyses with materialized answers, each with its runs."""
    kept: dict[str, set[str]] = {}
    for name, run in con.execute(query_sql("catalog", "materialized_answers")).fetchall():
        kept.setdefault(name, set()).add(run)
    return kept


def configure(con: duckdb.DuckDBPyConnection, folder: StoreFolder) -> None:
    """Apply the engine settings that queries of a store need."""
    plan_quicker(con)
    # A safe store locks the settings of the engine for all of its connections.
    cache_parquet_metadata(con)
    if filesystem := folder.filesystem():
        # All connections of a process to the same catalog share an engine.
        with suppress(duckdb.InvalidInputException):
            con.register_filesystem(filesystem)


def lacks_replaced_runs(
    con: duckdb.DuckDBPyConnection, folder: StoreFolder, identity: Identity
) -> bool:
    """Return whether a catalog excludes runs whose files were replaced during its build."""
    if not folder.local:
        return False
    ((_, lost),) = con.execute(query_sql("catalog", "omitted_runs")).fetchall()
    return bool(lost) and digest_of(manifest_bytes(folder)) != identity.manifest


def refreshed(folder: StoreFolder, library: Library, identity: Identity) -> bool:
    """Rebuild the store's own catalog if possible; return whether it was rebuilt."""
    try:
        with store_lock(folder, 0):
            if identity_of(folder, library) == identity:
                write_catalog(folder, library)
    except (OSError, duckdb.Error) as error:
        log.info("The catalog in %s cannot be rebuilt: %s.", folder.root, error)
        return False
    except (StoreVersionError, StoreDamagedError):
        raise
    except StoreError:
        return False  # an ingest holds the lock and will replace the catalog
    log.info("Rebuilt the catalog of %s.", folder.root)
    return True


def warn_of_runs_left_out(con: duckdb.DuckDBPyConnection, root: str) -> None:
    """Log which runs a catalog excludes, and how to restore them."""
    ((outdated, lost),) = con.execute(query_sql("catalog", "omitted_runs")).fetchall()
    if outdated:
        log.warning(
            "%s: omitted runs with different table definitions: %s. If a newer version of hta_sql "
            "wrote them, upgrade hta_sql; otherwise ingest their traces again.",
            root,
            outdated,
        )
    if lost:
        log.warning(
            "%s: omitted runs with missing or corrupt Parquet files: %s. Ingest their traces again, or "
            "restore the files.",
            root,
            lost,
        )


def warn_of_other_definitions(changed: list[str], root: str) -> None:
    """Log the runs whose definitions have changed, because some of their values may differ."""
    if changed:
        log.warning(
            "%s: the definitions have changed since these runs were ingested, so some of their "
            "numbers may differ: %s. Ingest their traces again.",
            root,
            ", ".join(changed),
        )
