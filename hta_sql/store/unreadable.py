"""Parquet that is gone or broken: found out where the engine stumbles over a file."""

from __future__ import annotations

import errno
import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hta_sql.store.faults import faults_of, of_entries
from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import CATALOG, Manifest

_LOST = (None, errno.ENOENT, errno.ENOTDIR, errno.EACCES)
"""What makes a file unreadable for good: no reason of the system's, or that it is not there."""


def is_of_database(error: duckdb.Error) -> bool:
    """Say whether the engine stumbled over a catalog, not over Parquet: a block of it is damaged."""
    if isinstance(error, (duckdb.IOException, duckdb.SerializationException)):
        return CATALOG in str(error)
    return "Corrupt database" in str(error)


def unreadable_runs(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the runs with files that cannot be read, among the files that an error may mean.

    Where it means none of them by name, all that are not what was written.

    Args:
        error: What the engine said; it names a file, or is none of its own kinds of errors, as
            for a broken footer.
        manifest: What the store holds.
        folder: Where it is.
    """
    found = {
        entry.run
        for entry in manifest.entries
        if any(_is_broken(error, folder, file["path"]) for file in entry.files.values())
    }
    if found or ".parquet" in str(error):
        return found
    faults = faults_of(folder, of_entries(manifest.entries), deep=False)
    return {fault.run for fault in faults if fault.run}


def unreadable_kept(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the files of derived tables that cannot be read to their end.

    The arguments are those of :func:`unreadable_runs`.
    """
    paths = (one.path for one in manifest.kept if one.path)
    return {path for path in paths if _is_broken(error, folder, path, pages=True)}


def _is_broken(error: duckdb.Error, folder: StoreFolder, path: str, *, pages: bool = False) -> bool:
    may_be_meant = type(error) is duckdb.Error or path in str(error)
    return may_be_meant and not _is_whole(folder, path, pages=pages)


def _is_whole(folder: StoreFolder, name: str, *, pages: bool) -> bool:
    """Look at the end of a Parquet file, where its columns are described; and read all pages."""
    try:
        source = folder.local / name if folder.local else io.BytesIO(folder.read(name))
        with pq.ParquetFile(source) as file:
            for _ in file.iter_batches() if pages else ():
                pass
    except pa.ArrowInvalid:
        return False
    except OSError as error:
        if error.errno not in _LOST:
            raise
        return False
    return True
