"""Writes the tables of ranks as complete, fsynced Parquet files, shared by ranks that are read together.

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
from hta_sql.library.sqltext import copy_to_path, create_table, drop_table, of_scope
from hta_sql.machine import temporary_folder
from hta_sql.store.catalog.rank_scope import DESCRIBING
from hta_sql.store.disk.digests import file_digest
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import SHARED
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
"""Number of rows of a row group.

Ranks are contiguous in a shared file, so a query of one rank skips the groups of other ranks.
Smaller groups cost more than reading the other ranks: 7 % of a scan of 17,000 kernels.
"""

Frames = list[dict[str, object] | None]
"""Clock, steps and end of recording of each rank; see sql/ingest/link/rank_frames.sql."""


@dataclass(frozen=True)
class StoredFile:
    """The rows of one rank in an immutable Parquet file of the store."""

    table: str
    path: str
    """Path relative to the tables folder."""
    rows: int
    file_rows: int
    """Rows of the whole file, which may contain other ranks."""
    bytes: int
    """Size of the whole file."""
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
    span: int
    writer: str
    """Prefix of the file names, which identifies the owner until a manifest references them."""


def write_tables(
    con: duckdb.DuckDBPyConnection,
    places: Sequence[RankOutput],
    events: Counter[str],
    threads: int = 1,
) -> list[StoredFile]:
    """Write every non-empty table of the ranks to new files, several tables in parallel.

    Ranks of the same run and span share a file. The files are fsynced; their folders are fsynced
    when the manifest is written.

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
        for path in {file.path for file in files}:
            remote.put(Path(folder, path), path)
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
    shared = _by_file(places)
    write = partial(_write_table, tables=tables, shared=shared, frames=frames)
    files = side_by_side(con, threads, write, wanted)
    written = {unnamed: ranks for of_table in files for unnamed, ranks in of_table if ranks}
    sync_all(written)
    for unnamed, ranks in written.items():
        unnamed.replace(tables / ranks[0].path)
    return [file for ranks in written.values() for file in ranks]


def _by_file(places: Sequence[RankOutput]) -> list[list[RankOutput]]:
    """Group the ranks that share a file: ranks with the same run and the same span."""
    found: dict[tuple[str, int], list[RankOutput]] = {}
    for place in places:
        found.setdefault((place.run, place.span), []).append(place)
    return list(found.values())


Written = tuple[Path, list[StoredFile]]
"""A temporary file and the rows of each rank in it; if there are no rows, the file was deleted."""


def _write_table(
    con: duckdb.DuckDBPyConnection,
    table: str,
    *,
    tables: Path,
    shared: Sequence[Sequence[RankOutput]],
    frames: Frames,
) -> list[Written]:
    """Write one table to a temporary file for each group of ranks that share a file."""
    select = _computed_rows(table)
    values = parameters(select, frames)
    if len(shared) == 1:
        return [_write_file(con, tables, table, shared[0], select=select, values=values)]
    # A TEMPORARY table is local to its connection, which writes one table after the other.
    run(con, create_table("written", select, "TEMPORARY"), values)
    select = ingest_sql("written", "rows_of_ranks")
    files = [
        _write_file(con, tables, table, places, select=select, values=_scope_of(places))
        for places in shared
    ]
    run(con, drop_table("written"))
    return files


def _write_file(
    con: duckdb.DuckDBPyConnection,
    tables: Path,
    table: str,
    places: Sequence[RankOutput],
    *,
    select: str,
    values: Mapping[str, object],
) -> Written:
    """Write the rows of ranks to a temporary file, if there are any."""
    unnamed, relative = _new_file(tables, table, places)
    file_rows = copy_to_parquet(con, select, unnamed, values)
    if not file_rows:
        unnamed.unlink()
        return unnamed, []
    counts = {places[0].rank: file_rows}
    if len(places) > 1:
        found = run(con, ingest_sql("written", "rows_by_rank"), {"path": str(unnamed)})
        counts = dict(found.fetchall())
    size, digest, path = unnamed.stat().st_size, file_digest(unnamed), relative.as_posix()
    return unnamed, [
        StoredFile(table, path, counts[place.rank], file_rows, size, digest, place.run, place.rank)
        for place in places
        if place.rank in counts
    ]


def _scope_of(places: Sequence[RankOutput]) -> dict[str, object]:
    """Return the parameters that select the rows of ranks of one run."""
    return {"run": places[0].run, "ranks": [place.rank for place in places]}


def rows_of(table: str) -> str:
    """Return a query that computes a stored table's rows from the staged and linked tables."""
    if table in CLUSTER_TABLES:
        return ingest_sql("store/cluster_tables", table)
    return ingest_sql(f"store/{table}")


def _computed_rows(table: str) -> str:
    """Return a query for a table's rows; tables that describe the ranks are already computed."""
    return of_scope(f"described_{table}", ()) if table in DESCRIBING else rows_of(table)


def frames_of(con: duckdb.DuckDBPyConnection) -> Frames:
    """Return clock, steps and end of recording of each rank; call this after linking its events."""
    ((frames,),) = run(con, ingest_sql("link/rank_frames", "frames")).fetchall()
    return list(frames)


def parameters(select: str, frames: Frames) -> dict[str, Frames]:
    """Return the parameters that a statement uses, because the engine rejects unused values."""
    return {"frames": frames} if "$frames" in select else {}


def _new_file(tables: Path, table: str, places: Sequence[RankOutput]) -> tuple[Path, Path]:
    """Return the path of a temporary file, and its final path relative to the tables folder."""
    name = f"{places[0].writer}{uuid.uuid4().hex}"
    folder = f"rank={places[0].rank}" if len(places) == 1 else SHARED
    relative = Path(table, f"run={places[0].run}", folder, f"{name}.parquet")
    (tables / relative).parent.mkdir(parents=True, exist_ok=True)
    # A leading dot and a different suffix hide the file from globs and directory scans of readers.
    return (tables / relative).with_name(f".{name}{PARTIAL}"), relative


def copy_to_parquet(
    con: duckdb.DuckDBPyConnection,
    select: str,
    path: Path,
    values: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Write the result of a SELECT with parameter values; return the number of rows."""
    # Delta encodings make version 2 a third smaller and a sixth cheaper to write than version 1.
    options = (
        f"FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
    )
    ((rows,),) = run(con, copy_to_path(select, options), {**values, "path": str(path)}).fetchall()
    return int(rows)
