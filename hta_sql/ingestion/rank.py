"""One rank: chunks ─▶ staged events ─▶ links ─▶ Parquet, in one DuckDB in memory.

A task for any Executor: everything it needs is in a RankJob, everything it
returns is small, and running it twice is harmless. The definitions are in
sql/ingest; this module only moves bytes and names.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.call_tree import CALL_TREE_SCHEMA, call_tree
from hta_sql.ingestion.chunks import CHUNK_BYTES, TraceReader
from hta_sql.ingestion.source import max_unpacked_bytes, open_trace
from hta_sql.ingestion.staging import EXTRACTED, stage_events
from hta_sql.sqlfiles import ingest_sql, sql_root

log = logging.getLogger(__name__)

STORED = ("ranks", "devices", "process_groups", "steps", *EXTRACTED, "event_args", "quarantine")
"""The tables of a store, each one file sql/ingest/store/<table>.sql."""

ROW_GROUP_ROWS = 122_880

CALL_TREE_BATCH_ROWS = 1 << 15
"""Host events in memory at once while the call tree is built: arrays of this size stay in the
cache, and cost a quarter less than those of half a million rows."""


@dataclass(frozen=True)
class RankJob:
    """What to ingest, as what, and with how much of the machine."""

    path: str
    run: str
    rank: int
    rank_source: str
    tables: str
    threads: int = 1
    memory_limit: str | None = None
    kernel_classes: str | None = None
    chunk_bytes: int = CHUNK_BYTES
    strict: bool = False


@dataclass(frozen=True)
class StoredFile:
    """One immutable Parquet file of the store; the path is relative to the tables folder."""

    table: str
    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class RankResult:
    """What one task did."""

    job: RankJob
    files: list[StoredFile]
    event_count: int
    quarantined: int
    start_ns: int | None
    seconds: float
    steps: list[str] = field(default_factory=list)


def ingest_rank(job: RankJob) -> RankResult:
    """Read one trace and write its tables; nothing is visible until a manifest names them."""
    started = time.monotonic()
    config: dict[str, str | bool | int | float | list[str]] = {"threads": job.threads}
    if job.memory_limit:
        config["memory_limit"] = job.memory_limit
    with duckdb.connect(":memory:", config=config) as con:
        limit = max_unpacked_bytes(job.path)
        reader = TraceReader(open_trace(job.path), job.path, job.chunk_bytes, limit)
        with reader.stream:
            events = stage_events(con, reader, strict=job.strict)
        event_count = sum(events.values())
        link_events(con, job, reader.metadata, event_count)
        files = write_tables(con, job, events)
        steps = [name for (name,) in con.execute("SELECT name FROM profiler_steps").fetchall()]
        ((start_ns,),) = con.execute("SELECT start_ns FROM rank_frame").fetchall()
    quarantined = sum(file.rows for file in files if file.table == "quarantine")
    seconds = time.monotonic() - started
    return RankResult(job, files, event_count, quarantined, start_ns, seconds, steps)


def link_events(
    con: duckdb.DuckDBPyConnection, job: RankJob, metadata: dict[str, Any], event_count: int
) -> None:
    """Derive once what every analysis needs: clock, steps, call tree, launches, classes."""
    con.execute(
        ingest_sql("link/job"),
        {
            "run": job.run,
            "rank": job.rank,
            "rank_source": job.rank_source,
            "source": job.path,
            "event_count": event_count,
            "metadata": json.dumps(metadata),
        },
    )
    _load_class_rules(con, job)
    for name in ("rank_clock", "profiler_steps", "step_windows", "last_step"):
        con.execute(ingest_sql(f"link/{name}"))
    con.execute(ingest_sql("link/rank_frame"))
    con.execute(ingest_sql("link/host_events"))
    _build_call_tree(con)
    for name in ("launches", "operators_by_external_id", "forward_operators"):
        con.execute(ingest_sql(f"link/{name}"))


def _build_call_tree(con: duckdb.DuckDBPyConnection) -> None:
    """Sort the host events in the engine and build the tree of them as they come out."""
    # The rows are read on one connection while the tree is written on another.
    with con.cursor() as sorted_events:
        reader = sorted_events.table("host_events").to_arrow_reader(CALL_TREE_BATCH_ROWS)
        tree = pa.RecordBatchReader.from_batches(CALL_TREE_SCHEMA, call_tree(reader))
        con.register("call_tree_rows", tree)
        con.execute(ingest_sql("link/call_tree"))
        con.unregister("call_tree_rows")


def _load_class_rules(con: duckdb.DuckDBPyConnection, job: RankJob) -> None:
    """Classify the kernel names by kernel_classes.csv and the user's own rules before it."""
    own = [job.kernel_classes] if job.kernel_classes else []
    files = [*own, str(sql_root() / "ingest" / "kernel_classes.csv")]
    con.execute(ingest_sql("link/class_rules"), {"files": files})
    rules = con.execute("SELECT regex FROM class_rules").fetchall()
    any_rule = "|".join(f"(?:{regex})" for (regex,) in rules)
    con.execute(ingest_sql("link/kernel_classes"), {"any_rule": any_rule})


def write_tables(
    con: duckdb.DuckDBPyConnection, job: RankJob, events: Counter[str]
) -> list[StoredFile]:
    """Write every table that has rows, each under a new name that nobody else uses."""
    files = []
    for table in STORED:
        # Planning and writing a table costs milliseconds, with rows or without.
        if table in EXTRACTED and not events[table]:
            continue
        relative = Path(table, f"run={job.run}", f"rank={job.rank}", f"{uuid.uuid4().hex}.parquet")
        target = Path(job.tables, relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        # A dot and another suffix: neither a reader's glob nor a directory scan takes it.
        partial = target.with_name(f".{target.stem}.partial")
        select = ingest_sql(f"store/{table}")
        rows = copy_to_parquet(con, select, partial)
        if not rows:
            partial.unlink()
            continue
        size = partial.stat().st_size
        partial.replace(target)
        files.append(StoredFile(table, relative.as_posix(), rows, size))
    return files


def copy_to_parquet(con: duckdb.DuckDBPyConnection, select: str, path: Path) -> int:
    """Write what a SELECT returns; returns the number of rows."""
    # Version 2 has delta encodings: a third smaller and a sixth cheaper to write than version 1.
    options = (
        f"FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
    )
    copy = f"COPY (\n{select}\n) TO $path ({options})"
    ((rows,),) = con.execute(copy, {"path": str(path)}).fetchall()
    return int(rows)
