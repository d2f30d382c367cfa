"""What was read ─▶ the staged tables, one for each kind of event, by whichever reader read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

import duckdb
import pyarrow as pa

from hta_sql.ingestion.native import CHUNK_BITS, NativeBatch
from hta_sql.ingestion.running.side_by_side import side_by_side
from hta_sql.ingestion.statements import run
from hta_sql.library.arguments import FIELDS, extraction
from hta_sql.library.files import ingest_sql
from hta_sql.library.sqltext import create_table, insert

EXTRACTED = (
    "cpu_ops",
    "runtime_calls",
    "gpu_ops",
    "annotations",
    "python_calls",
    "memory_events",
    "flows",
    "counters",
    "other_events",
)


def fill(
    con: duckdb.DuckDBPyConnection,
    natives: Iterable[NativeBatch],
    starts: Mapping[int, int],
    *,
    is_first: bool,
    threads: int,
) -> None:
    """Bring what the compiled reader has read into the staged tables.

    Args:
        con: The database.
        natives: What it has read, one batch or one for each trace.
        starts: Id of the first event of each chunk.
        is_first: The tables are to be made.
        threads: Fill so many tables at once.
    """
    read = [native.tables([starts[chunk] for chunk in native.events]) for native in natives]
    tables = {table: pa.concat_tables([one[table] for one in read]) for table in EXTRACTED}
    statement = create_table if is_first else insert

    def into_table(con: duckdb.DuckDBPyConnection, table: str) -> None:
        con.register("native_rows", tables[table])
        run(con, statement(f"staged_{table}", "FROM native_rows"))
        con.unregister("native_rows")

    wanted = [table for table in tables if is_first or tables[table].num_rows]
    side_by_side(
        con, threads, into_table, sorted(wanted, key=lambda table: -tables[table].num_rows)
    )


def number(
    con: duckdb.DuckDBPyConnection,
    first_event_ids: list[int],
    read: Mapping[int, int],
    *,
    is_parsed: bool = True,
) -> dict[int, int]:
    """Count the events before each chunk of a batch; returns the id of the first in each.

    Args:
        con: The database with the parsed events.
        first_event_ids: Id of the first event of each trace in the batch.
        read: Chunk ─▶ number of events, of those that were not parsed.
        is_parsed: There are others, which were.
    """
    if not is_parsed:
        ids, starts = list(first_event_ids), {}
        for chunk, count in read.items():
            starts[chunk] = ids[chunk >> CHUNK_BITS]
            ids[chunk >> CHUNK_BITS] += count
        return starts
    values = {
        "first_event_ids": first_event_ids,
        "read": [{"chunk": chunk, "event_count": count} for chunk, count in read.items()],
    }
    run(con, ingest_sql("parse/chunk_starts"), values)
    return dict(run(con, "SELECT chunk, first_event_id FROM chunk_starts").fetchall())


def extract(
    con: duckdb.DuckDBPyConnection,
    counts: Counter[str],
    *,
    is_first: bool,
    threads: int,
) -> None:
    """Bring the parsed events of a batch, which are numbered, into the staged tables.

    Args:
        con: The database with the parsed events.
        counts: Number of events by table.
        is_first: The tables are to be made.
        threads: Fill so many tables at once.
    """
    run(con, ingest_sql("parse/batch_events"))
    largest_first = sorted(counts.keys() & set(EXTRACTED), key=lambda table: -counts[table])
    side_by_side(con, threads, partial(_extract, into_new=is_first), largest_first)
    if is_first:
        absent = [table for table in EXTRACTED if table not in counts]
        side_by_side(con, threads, _create_empty, absent)


def _extract(con: duckdb.DuckDBPyConnection, table: str, *, into_new: bool) -> None:
    """Bring one kind of event of the batch into its table.

    The SELECT goes into one statement, without a view between: binding and planning it is what
    a small rank costs, and a view has it bound at every step.
    """
    select = extraction(table) if table in FIELDS else ingest_sql(f"extract/{table}")
    run(con, (create_table if into_new else insert)(f"staged_{table}", select))


_definitions: dict[str, str] = {}
"""Staged table ─▶ its DDL, as the engine inferred it for an earlier rank of this process."""


def _create_empty(con: duckdb.DuckDBPyConnection, table: str) -> None:
    if table in _definitions:
        run(con, _definitions[table])
        return
    _extract(con, table, into_new=True)
    named = {"table_name": f"staged_{table}"}
    ((_definitions[table],),) = run(con, ingest_sql("link/table_definition"), named).fetchall()
