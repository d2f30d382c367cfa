"""Writes the tables of one rank: complete and on the disk, or not there at all.

Nothing written here is visible before a manifest names it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from hta_sql.ingestion.mindspore import CLUSTER_TABLES
from hta_sql.ingestion.running.side_by_side import side_by_side
from hta_sql.ingestion.staging import EXTRACTED
from hta_sql.library.files import ingest_sql
from hta_sql.library.sqltext import copy_to_path
from hta_sql.machine import temporary_folder
from hta_sql.store.files import store_folder
from hta_sql.store.sealed import file_digest
from hta_sql.traces.writing import PARTIAL, sync

STORED = (
    *("ranks", "devices", "process_groups", "steps"),
    *EXTRACTED,
    *("stacks", "event_args", "quarantine"),
    *CLUSTER_TABLES,
)
"""The tables of a store, each one file sql/ingest/store/<table>.sql."""

ROW_GROUP_ROWS = 122_880

MANY_EVENTS = 1_000_000
"""Beyond it the tables have row groups for every core, and are written one after the other: two
sorts at once take twice the memory, and 14 million events then no longer fit 600 MiB."""


@dataclass(frozen=True)
class StoredFile:
    """One immutable Parquet file of the store; the path is relative to the tables folder."""

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Place:
    """Where the files of a rank go."""

    tables: str
    """Folder or URL of the store's tables."""
    run: str
    rank: int
    writer: str
    """Beginning of the file names: whose they are, until a manifest names them."""


def write_tables(
    con: duckdb.DuckDBPyConnection, place: Place, events: Counter[str], threads: int = 1
) -> list[StoredFile]:
    """Write every table that has rows, up to so many at once, under new names of their own.

    The files are on the disk then; their folders are when the manifest is written.
    """
    if "://" not in place.tables:
        return _write_local(con, Path(place.tables), place, events, threads)
    remote = store_folder(place.tables)
    with temporary_folder() as folder:
        files = _write_local(con, Path(folder), place, events, threads)
        for file in files:
            remote.put(Path(folder, file.path), file.path)
    return files


def _write_local(
    con: duckdb.DuckDBPyConnection,
    tables: Path,
    place: Place,
    events: Counter[str],
    threads: int,
) -> list[StoredFile]:
    # Planning and writing a table costs milliseconds, with rows or without.
    wanted = [t for t in STORED if events[t] or t not in (*EXTRACTED, *CLUSTER_TABLES)]
    # The leftover arguments are looked for in all events.
    sizes = {**events, "event_args": events.total()}
    wanted.sort(key=lambda table: -sizes.get(table, 0))
    at_once = threads if events.total() < MANY_EVENTS else 1
    files = side_by_side(con, at_once, partial(_write_table, tables=tables, place=place), wanted)
    written = [file for file in files if file]
    # Flushed together at the end: the first flush takes most of the others along.
    for unnamed, _ in written:
        sync(unnamed)
    for unnamed, file in written:
        unnamed.replace(tables / file.path)
    return [file for _, file in written]


def _write_table(
    con: duckdb.DuckDBPyConnection, table: str, *, tables: Path, place: Place
) -> tuple[Path, StoredFile] | None:
    """Write one table to a file without its name yet; None: it has no rows."""
    name = f"{place.writer}{uuid.uuid4().hex}"
    relative = Path(table, f"run={place.run}", f"rank={place.rank}", f"{name}.parquet")
    (tables / relative).parent.mkdir(parents=True, exist_ok=True)
    # A dot and another suffix: neither a reader's glob nor a directory scan takes it.
    unnamed = (tables / relative).with_name(f".{name}{PARTIAL}")
    rows = copy_to_parquet(con, ingest_sql(f"store/{table}"), unnamed)
    if rows:
        size, digest = unnamed.stat().st_size, file_digest(unnamed)
        return unnamed, StoredFile(table, relative.as_posix(), rows, size, digest)
    unnamed.unlink()
    return None


def copy_to_parquet(con: duckdb.DuckDBPyConnection, select: str, path: Path) -> int:
    """Write what a SELECT returns; returns the number of rows."""
    # Version 2 has delta encodings: a third smaller and a sixth cheaper to write than version 1.
    options = (
        f"FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
    )
    ((rows,),) = con.execute(copy_to_path(select, options), {"path": str(path)}).fetchall()
    return int(rows)
