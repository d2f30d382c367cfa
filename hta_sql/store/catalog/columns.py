"""Columns of a store's files: reads files that were written by different versions as one table.

A file is written once, with the columns of the version that writes it. A column that was added
later is read as NULL, and a column whose type was widened is cast. Columns that no longer exist are
not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb

from hta_sql._version import __version__
from hta_sql.errors import StoreVersionError
from hta_sql.library import sqltext
from hta_sql.library.file_groups import FileGroup
from hta_sql.library.sql_files import Columns, columns_digest, stored_columns
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import (
    FROM_PATH,
    UPGRADE,
    Manifest,
    RankEntry,
    is_newer_version,
    is_shared,
)

LOSSLESS = {
    ("INTEGER", "BIGINT"),
    ("INTEGER", "DOUBLE"),
    ("JSON", "VARCHAR"),
}
"""Lossless casts: (type in an older file, current type)."""


@dataclass(frozen=True)
class StoredFiles:
    """The files of a store that this version of hta_sql can read, with their columns."""

    manifest: Manifest
    """Manifest that contains only the readable entries, and the schemas of all their files."""
    left_out: list[str]
    """Runs with files whose columns cannot be read by this version."""
    lost: tuple[str, ...] = ()
    """Runs with missing or corrupt files."""

    def parts(self, table: str) -> list[FileGroup]:
        """Return the files of a table, grouped by how they are read."""
        claims: dict[str, list[RankEntry]] = {}
        for entry in self.manifest.entries:
            if table in entry.files:
                claims.setdefault(entry.files[table]["path"], []).append(entry)
        found: dict[tuple[object, ...], FileGroup] = {}
        for path, entries in claims.items():
            part = self._group(table, path, entries)
            key = (part.span, part.rank_in_path, part.ranks, *part.columns.items())
            found.setdefault(key, part).paths.append(path)
        return list(found.values())

    def _group(self, table: str, path: str, entries: list[RankEntry]) -> FileGroup:
        """Return an empty group for a file and the entries that reference it."""
        first = entries[0]
        rows = sum(entry.files[table]["rows"] for entry in entries)
        is_whole = rows == first.files[table]["file_rows"]
        return FileGroup(
            self.manifest.schemas[first.schema][table] | FROM_PATH,
            [],
            first.span,
            rank_in_path=not is_shared(path),
            ranks=None if is_whole else tuple(entry.rank for entry in entries),
        )

    def missing(self, entry: RankEntry) -> list[str]:
        """List the missing tables and columns of a rank's files, such as ``gpu_ops.queued_ns``."""
        if entry.schema == columns_digest():
            return []
        had = self.manifest.schemas[entry.schema]
        return [table for table in stored_columns() if table not in had] + [
            f"{table}.{name}"
            for table, columns in stored_columns().items()
            if table in entry.files
            for name in columns
            if name not in had[table]
        ]


def stored_files(manifest: Manifest, folder: StoreFolder) -> StoredFiles:
    """Determine the columns of a store's files.

    For each schema that the manifest does not describe, one file per table is opened.

    Raises:
        StoreVersionError: There are entries, but none of them can be read.
    """
    schemas = {columns_digest(): stored_columns(), **manifest.schemas}
    undescribed = [entry for entry in manifest.entries if entry.schema not in schemas]
    if undescribed:
        schemas |= _looked_up(undescribed, folder)
    changed = {digest: _changed(schemas[digest]) for digest in schemas}
    readable = [entry for entry in manifest.entries if not changed[entry.schema]]
    left_out = sorted({entry.run for entry in manifest.entries if changed[entry.schema]})
    if left_out and not readable:
        again = f"Ingest its traces again: hta-sql ingest TRACES -o {folder.root}"
        first = next(change for changes in changed.values() for change in changes)
        raise StoreVersionError(
            f"{folder.root!r} was written with different table definitions (by hta_sql "
            f"{manifest.writer}; this is {__version__}): {first}. "
            f"{UPGRADE if is_newer_version(manifest.writer) else again}"
        )
    return StoredFiles(replace(manifest, entries=readable, schemas=schemas), left_out)


def _looked_up(entries: Iterable[RankEntry], folder: StoreFolder) -> dict[str, Columns]:
    """Read the columns of each table and schema from one file."""
    found: dict[str, Columns] = {}
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        if filesystem := folder.filesystem():
            con.register_filesystem(filesystem)
        for entry in entries:
            tables = found.setdefault(entry.schema, {})
            for table in entry.files.keys() - tables.keys():
                path = folder.path(entry.files[table]["path"])
                file = con.read_parquet(path, hive_partitioning=False)
                tables[table] = dict(zip(file.columns, map(str, file.types), strict=True))
    # A table without a file has no missing columns.
    return {digest: stored_columns() | tables for digest, tables in found.items()}


def _changed(schema: Columns) -> list[str]:
    """List the columns whose type cannot be cast losslessly to the current type."""
    return [
        f"{table}.{name} is {had}, not {kind}"
        for table, columns in stored_columns().items()
        for name, kind in columns.items()
        if (had := schema.get(table, {}).get(name, kind)) != kind
        and (had, kind) not in LOSSLESS
        and name not in FROM_PATH
    ]


@contextmanager
def viewed(
    files: StoredFiles, folder: StoreFolder, tables: Iterable[str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database with views of some tables, such as ``stored.gpu_ops``."""
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        if filesystem := folder.filesystem():
            con.register_filesystem(filesystem)
        con.execute(sqltext.create_schema("stored"))
        for table in tables:
            columns = stored_columns()[table]
            if parts := [part.below(folder.root) for part in files.parts(table)]:
                con.execute(sqltext.parquet_view(table, columns, parts))
            else:
                con.execute(sqltext.values_view(f"stored.{table}", columns, []))
        yield con
