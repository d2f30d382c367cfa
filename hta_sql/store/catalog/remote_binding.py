"""File system that lets the engine define views over files at a URL without any request.

To define a view, the engine opens every file that the view names, and reads the columns of one
file. For a thousand ranks in object storage, this takes fifteen thousand requests for information
that is already known. While a catalog is built, this file system replaces the real one: every file
exists, and has the columns of its schema.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
from fsspec import AbstractFileSystem

from hta_sql.library import sqltext
from hta_sql.library.file_groups import FileGroup
from hta_sql.machine import temporary_folder


class KnownColumns(AbstractFileSystem):  # type: ignore[misc]
    """Serves an empty Parquet file with the right columns for each file of a store."""

    cachable = False

    def __init__(self, real: Any, samples: dict[str, bytes]) -> None:
        super().__init__()
        self.protocol = real.protocol
        self._samples = samples

    def _sample(self, path: str) -> bytes:
        """Return the sample for .../tables/<table>/run=.../<folder>/<id>.parquet."""
        name = "/".join(path.split("/")[-5:])
        if name not in self._samples:
            raise FileNotFoundError(path)
        return self._samples[name]

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """Return name, size and type of a file."""
        return {"name": path, "size": len(self._sample(path)), "type": "file"}

    def glob(self, path: str, **_options: Any) -> list[str]:
        """Return the path itself."""
        return [path]

    def modified(self, _path: str) -> datetime:
        """Return a constant modification time; the engine does not use it for caching here."""
        return datetime.fromtimestamp(0, UTC)

    def open(self, path: str, *_arguments: Any, **_options: Any) -> io.BytesIO:
        """Open the sample for a file."""
        return io.BytesIO(self._sample(path))


def known_columns(
    con: duckdb.DuckDBPyConnection, real: Any, tables: Iterable[list[FileGroup]]
) -> KnownColumns:
    """Create the file system for the files of a store's tables."""
    samples: dict[str, bytes] = {}
    with temporary_folder() as folder:
        sample = Path(folder, "sample.parquet")
        for part in chain.from_iterable(tables):
            con.sql(sqltext.values(part.columns, [])).write_parquet(str(sample))
            samples |= dict.fromkeys(part.paths, sample.read_bytes())
    return KnownColumns(real, samples)
