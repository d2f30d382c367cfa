"""Writes the tables of one rank as complete, fsynced Parquet files.

The files are invisible until a manifest references them.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import duckdb

from hta_sql.ingestion.artifacts.dumps import DUMP_TABLES
from hta_sql.ingestion.artifacts.execution_traces import EXECUTION_TRACE_TABLES
from hta_sql.ingestion.artifacts.snapshots import SNAPSHOT_TABLES
from hta_sql.ingestion.running.side_by_side import side_by_side
from hta_sql.ingestion.staged_tables import EXTRACTED
from hta_sql.ingestion.statements import run
from hta_sql.ingestion.vendors.mindspore import CLUSTER_TABLES
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import copy_to_path, create_table, of_scope
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.rank_scope import DESCRIBING
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.integrity import file_digest
from hta_sql.traces.writing import PARTIAL, sync_all

STORED = (
    *("ranks", "devices", "process_groups", "steps"),
    *EXTRACTED,
    *("stacks", "event_args", "quarantine", "graph_matches", "compiled_kernels"),
    *CLUSTER_TABLES,
    *DUMP_TABLES,
    *SNAPSHOT_TABLES,
    *EXECUTION_TRACE_TABLES,
)
"""The tables of a store.

Each is defined in sql/ingest/store/<table>.sql; the cluster tables share one file.
"""

ROW_GROUP_ROWS = 122_880

Frames = list[dict[str, object] | None]
"""Facts that place the rows of each rank; see sql/ingest/link/rank_frames.sql."""


@dataclass(frozen=True)
class StoredFile:
    """One immutable Parquet file of the store; the path is relative to the tables folder."""

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str
    run: str
    rank: int


@dataclass(frozen=True)
class RankOutput:
    """Target of the files of a rank."""

    tables: str
    """Folder or URL of the store's tables."""
    run: str
    rank: int
    writer: str
    """Prefix of the file names, which identifies the owner until a manifest references them."""


def write_tables(
    con: duckdb.DuckDBPyConnection,
    places: Sequence[RankOutput],
    events: Counter[str],
    threads: int = 1,
) -> list[StoredFile]:
    """Write every non-empty table of each rank to new files, several tables in parallel.

    The files are fsynced; their folders are fsynced when the manifest is written.

    Args:
        con: The database of the ranks.
        places: Targets of the ranks, all in one store.
        events: Number of rows by table, or an upper bound.
        threads: Number of tables written in parallel.
    """
    (tables,) = {place.tables for place in places}
    if "://" not in tables:
        return _write_local(con, Path(tables), places, events, threads)
    remote = store_folder(tables)
    with temporary_folder() as folder:
        files = _write_local(con, Path(folder), places, events, threads)
        for file in files:
            remote.put(Path(folder, file.path), file.path)
    return files


def _write_local(
    con: duckdb.DuckDBPyConnection,
    tables: Path,
    places: Sequence[RankOutput],
    events: Counter[str],
    threads: int,
) -> list[StoredFile]:
    total = sum(events[table] for table in EXTRACTED)
    # Extracting event_args scans all events.
    sizes = events | Counter(ranks=len(places), event_args=total)
    # Planning and writing a table costs milliseconds even without rows, so empty ones are skipped.
    wanted = sorted((table for table in STORED if sizes[table]), key=lambda table: -sizes[table])
    frames = frames_of(con)
    write = partial(_write_table if len(places) == 1 else _write_ranks, tables=tables)
    files = side_by_side(con, threads, partial(write, places=places, frames=frames), wanted)
    written = [file for of_table in files for file in of_table]
    sync_all(unnamed for unnamed, _ in written)
    for unnamed, file in written:
        unnamed.replace(tables / file.path)
    return [file for _, file in written]


def _write_table(
    con: duckdb.DuckDBPyConnection,
    table: str,
    *,
    tables: Path,
    places: Sequence[RankOutput],
    frames: Frames,
) -> list[tuple[Path, StoredFile]]:
    """Write one table of a single rank to a temporary file, if it has rows."""
    unnamed, relative = _new_file(tables, table, places[0])
    select = _computed_rows(table)
    rows = copy_to_parquet(con, select, unnamed, parameters(select, frames))
    if not rows:
        unnamed.unlink()
    return [(unnamed, _stored(table, relative, places[0], unnamed, rows))] if rows else []


def _write_ranks(
    con: duckdb.DuckDBPyConnection,
    table: str,
    *,
    tables: Path,
    places: Sequence[RankOutput],
    frames: Frames,
) -> list[tuple[Path, StoredFile]]:
    """Compute one table of all ranks, and write the rows of each rank to a temporary file."""
    # A TEMPORARY table is local to its connection, on which the tables follow each other.
    select = _computed_rows(table)
    run(con, create_table("written", select, "TEMPORARY"), parameters(select, frames))
    there = {
        (run, rank) for run, rank in run(con, ingest_sql("written", "ranks_written")).fetchall()
    }
    files = []
    for place in places:
        if (place.run, place.rank) in there:
            unnamed, relative = _new_file(tables, table, place)
            of_rank = {"run": place.run, "rank": place.rank}
            rows = copy_to_parquet(con, ingest_sql("written", "rows_of_rank"), unnamed, of_rank)
            files.append((unnamed, _stored(table, relative, place, unnamed, rows)))
    run(con, "DROP TABLE written")
    return files


def rows_of(table: str) -> str:
    """Return the SELECT of the rows of a stored table, from the staged and linked tables."""
    if table in CLUSTER_TABLES:
        return ingest_sql("store/cluster_tables", table)
    return ingest_sql(f"store/{table}")


def _computed_rows(table: str) -> str:
    """Return the SELECT of a table; tables that describe the ranks are computed already."""
    return of_scope(f"described_{table}", ()) if table in DESCRIBING else rows_of(table)


def frames_of(con: duckdb.DuckDBPyConnection) -> Frames:
    """Return the frames that place the rows of each rank, after its events are linked."""
    ((frames,),) = run(con, ingest_sql("link/rank_frames", "frames")).fetchall()
    return list(frames)


def parameters(select: str, frames: Frames) -> dict[str, Frames]:
    """Return the parameters of a statement: the engine rejects values that it does not use."""
    return {"frames": frames} if "$frames" in select else {}


def _new_file(tables: Path, table: str, place: RankOutput) -> tuple[Path, Path]:
    """Return the path of a temporary file, and its final path relative to the tables folder."""
    name = f"{place.writer}{uuid.uuid4().hex}"
    relative = Path(table, f"run={place.run}", f"rank={place.rank}", f"{name}.parquet")
    (tables / relative).parent.mkdir(parents=True, exist_ok=True)
    # A leading dot and another suffix hide it from globs and directory scans of readers.
    return (tables / relative).with_name(f".{name}{PARTIAL}"), relative


def _stored(table: str, relative: Path, place: RankOutput, unnamed: Path, rows: int) -> StoredFile:
    size, digest = unnamed.stat().st_size, file_digest(unnamed)
    return StoredFile(table, relative.as_posix(), rows, size, digest, place.run, place.rank)


def copy_to_parquet(
    con: duckdb.DuckDBPyConnection,
    select: str,
    path: Path,
    values: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Write the result of a SELECT with parameter values; return the number of rows."""
    # Version 2 has delta encodings: a third smaller and a sixth cheaper to write than version 1.
    options = (
        f"FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
    )
    ((rows,),) = run(con, copy_to_path(select, options), {**values, "path": str(path)}).fetchall()
    return int(rows)
