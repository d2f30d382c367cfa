"""Finds the runs and materialized files whose loss or corruption caused an engine error."""

from __future__ import annotations

import logging
from collections.abc import Collection

import duckdb

from hta_sql.store.disk.file_checks import Expected, faults_of, of_entries, of_materialized
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import CATALOG, Manifest

log = logging.getLogger(__name__)


def is_of_database(error: duckdb.Error) -> bool:
    """Return whether an engine error comes from a corrupt catalog file, not from Parquet."""
    if isinstance(error, (duckdb.IOException, duckdb.SerializationException)):
        return CATALOG in str(error)
    return "Corrupt database" in str(error)


def unreadable_runs(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the runs to which an engine error may refer and whose files differ from the manifest.

    Args:
        error: The engine's error. If it names no file, as for a corrupt footer, all files are
            checked.
        manifest: Manifest of the store.
        folder: Folder of the store.
    """
    faults = faults_of(folder, _meant(error, of_entries(manifest.entries)))
    if faults:
        warn_of_changed_files(folder.root, {fault.file for fault in faults})
    return {fault.run for fault in faults if fault.run}


def unreadable_materialized(
    error: duckdb.Error, manifest: Manifest, folder: StoreFolder
) -> set[str]:
    """Find the materialized files that differ from the manifest.

    For the arguments, see :func:`unreadable_runs`.
    """
    return {
        f.file for f in faults_of(folder, _meant(error, of_materialized(manifest.materialized)))
    }


def _meant(error: duckdb.Error, files: list[Expected]) -> list[Expected]:
    said = str(error)
    return [file for file in files if file.path in said] if ".parquet" in said else files


def warn_of_changed_files(root: str, files: Collection[str]) -> None:
    """Log a warning with the files whose size, checksum or origin differs from the manifest."""
    log.warning(
        "%s: files have changed since they were written: %s. To list all faults: hta-sql verify %s",
        root,
        ", ".join(sorted(files)),
        root,
    )
