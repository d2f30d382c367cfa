"""Which columns the files of a store have, and how those of several versions are read as one table.

A file is written once, with the columns of the version that writes it. A column that came later is
NULL in it, and one whose type has grown is cast; what today's tables do not have is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb

from hta_sql._version import __version__
from hta_sql.errors import StoreVersionError
from hta_sql.library import sqltext
from hta_sql.library.sql_files import Columns, columns_digest, stored_columns
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import FROM_PATH, UPGRADE, Manifest, RankEntry, is_newer_version

LOSSLESS = {
    ("INTEGER", "BIGINT"),
    ("INTEGER", "DOUBLE"),
    ("JSON", "VARCHAR"),
}
"""(Type in an older file, type today) where a cast keeps every value as it is."""


@dataclass(frozen=True)
class FileGroup:
    """Files of one table and span that have the same columns; their paths are relative to the store."""

    columns: dict[str, str]
    paths: list[str]
    span: int = 0


@dataclass(frozen=True)
class StoredFiles:
    """The files of a store, as this version reads them."""

    manifest: Manifest
    """With the entries that can be read; its schemas describe the files of all of them."""
    left_out: list[str]
    """Runs of which there are files with columns that cannot be read."""
    lost: tuple[str, ...] = ()
    """Runs of which there are files that are gone or broken."""

    def parts(self, table: str) -> list[FileGroup]:
        """List the files of a table, those of a span with the same columns together."""
        found: dict[tuple[object, ...], FileGroup] = {}
        for entry in self.manifest.entries:
            if table in entry.files:
                columns = self.manifest.schemas[entry.schema][table] | FROM_PATH
                part = found.setdefault(
                    (entry.span, *columns.items()), FileGroup(columns, [], entry.span)
                )
                part.paths.append(entry.files[table]["path"])
        return list(found.values())

    def missing(self, entry: RankEntry) -> list[str]:
        """List what today's tables have and a rank's files have not: ``gpu_ops.queued_ns``."""
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
    """Find out what the files of a store have; looks into some of those that nothing describes.

    Raises:
        StoreVersionError: There are entries, but none of them can be read.
    """
    schemas = {columns_digest(): stored_columns(), **manifest.schemas}
    undescribed = [entry for entry in manifest.entries if entry.schema not in schemas]
    if undescribed:
        schemas |= _looked_up(undescribed, folder)
    changed = {digest: _changed(schemas[digest]) for digest in schemas}
    aside = manifest.aside_runs()
    readable = [e for e in manifest.entries if not changed[e.schema] and e.run not in aside]
    left_out = sorted({entry.run for entry in manifest.entries if changed[entry.schema]})
    if left_out and not readable:
        again = f"Ingest its traces again: hta-sql ingest TRACES -o {folder.root}"
        first = next(change for changes in changed.values() for change in changes)
        raise StoreVersionError(
            f"{folder.root!r} was written with other table definitions (by hta_sql "
            f"{manifest.writer}; this is {__version__}): {first}. "
            f"{UPGRADE if is_newer_version(manifest.writer) else again}"
        )
    lost = tuple(sorted(aside))
    return StoredFiles(replace(manifest, entries=readable, schemas=schemas), left_out, lost)


def _looked_up(entries: Iterable[RankEntry], folder: StoreFolder) -> dict[str, Columns]:
    """Read from one file of each table and schema which columns it has."""
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
    # Of tables without a file nothing is missing.
    return {digest: stored_columns() | tables for digest, tables in found.items()}


def _changed(schema: Columns) -> list[str]:
    """Say which columns have a type that cannot be cast to today's without a loss."""
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
    """Open a database in memory with views of some tables: ``stored.gpu_ops``."""
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        if filesystem := folder.filesystem():
            con.register_filesystem(filesystem)
        con.execute(sqltext.create_schema("stored"))
        for table in tables:
            columns = stored_columns()[table]
            parts = [(p.columns, [*map(folder.path, p.paths)], p.span) for p in files.parts(table)]
            if parts:
                con.execute(sqltext.parquet_view(table, columns, parts))
            else:
                con.execute(sqltext.values_view(f"stored.{table}", columns, []))
        yield con
