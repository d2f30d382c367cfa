"""Runs whose Parquet is gone or broken: found out where the engine stumbles over a file."""

from __future__ import annotations

import errno
import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import Manifest

_LOST = (None, errno.ENOENT, errno.ENOTDIR, errno.EACCES)
"""What makes a file unreadable for good: no reason of the system's, or that it is not there."""


def unreadable_runs(error: duckdb.Error, manifest: Manifest, folder: StoreFolder) -> set[str]:
    """Find the runs with files that cannot be read, among the files that an error may mean.

    Args:
        error: What the engine said; it names a file, or is none of its own kinds of errors, as
            for a broken footer.
        manifest: What the store holds.
        folder: Where it is.
    """
    message = str(error)
    is_unnamed = type(error) is duckdb.Error
    return {
        entry.run
        for entry in manifest.entries
        if any(
            (is_unnamed or file["path"] in message) and not _is_whole(folder, file["path"])
            for file in entry.files.values()
        )
    }


def _is_whole(folder: StoreFolder, name: str) -> bool:
    """Look at the end of a Parquet file, where its columns are described."""
    try:
        pq.read_metadata(folder.local / name if folder.local else io.BytesIO(folder.read(name)))
    except pa.ArrowInvalid:
        return False
    except OSError as error:
        if error.errno not in _LOST:
            raise
        return False
    return True
