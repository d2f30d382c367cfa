"""Parquet that is gone or broken: found out where the engine stumbles over a file."""

from __future__ import annotations

import logging
from collections.abc import Collection

import duckdb

from hta_sql.store.faults import Expected, faults_of, of_entries, of_kept
from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import CATALOG, Manifest

log = logging.getLogger(__name__)


def is_of_database(error: duckdb.Error) -> bool:
    """Say whether the engine stumbled over a catalog, not over Parquet: a block of it is damaged."""
    if isinstance(error, (duckdb.IOException, duckdb.SerializationException)):
        return CATALOG in str(error)
    return "Corrupt database" in str(error)


def unreadable_runs(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the runs with files that are not what was written, among those that an error may mean.

    Args:
        error: What the engine said; where it names no file, as for a broken footer, all may be meant.
        manifest: What the store holds.
        folder: Where it is.
    """
    faults = faults_of(folder, _meant(error, of_entries(manifest.entries)), deep=False)
    if faults:
        warn_of_changed_files(folder.root, {fault.file for fault in faults})
    return {fault.run for fault in faults if fault.run}


def unreadable_kept(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the files of derived tables that are not what was written.

    The arguments are those of :func:`unreadable_runs`.
    """
    return {f.file for f in faults_of(folder, _meant(error, of_kept(manifest.kept)), deep=True)}


def _meant(error: duckdb.Error, files: list[Expected]) -> list[Expected]:
    said = str(error)
    return [file for file in files if file.path in said] if ".parquet" in said else files


def warn_of_changed_files(root: str, files: Collection[str]) -> None:
    """Name the files whose size, checksum or origin is not what was written."""
    log.warning(
        "%s: files are not what was written; hta-sql verify %s tells what is wrong: %s.",
        root,
        root,
        ", ".join(sorted(files)),
    )


def warn_of_runs_left_out(con: duckdb.DuckDBPyConnection, root: str) -> None:
    """Say which runs a catalog leaves out, and what brings them back."""
    ((outdated, lost),) = con.execute("SELECT left_out, lost FROM stored.store_info").fetchall()
    if outdated:
        log.warning(
            "%s: left out runs that were written with other table definitions; upgrade hta_sql "
            "if a newer one wrote them, else ingest their traces again: %s.",
            root,
            outdated,
        )
    if lost:
        log.warning(
            "%s: left out runs whose Parquet is missing or broken; ingest their traces again, "
            "or bring the files back; hta-sql repair %s does what can be done: %s.",
            root,
            root,
            lost,
        )


def warn_of_other_definitions(changed: list[str], root: str) -> None:
    """Say which runs another version read, in other ways perhaps."""
    if changed:
        log.warning(
            "%s: runs that were ingested by other definitions than this hta_sql's, so that "
            "some numbers may differ; ingest the same traces again, into it: %s.",
            root,
            ", ".join(changed),
        )
