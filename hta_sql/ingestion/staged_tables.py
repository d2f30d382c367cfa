"""Fills the staged tables, one per kind of event, from either reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial

import duckdb
import pyarrow as pa

from hta_sql.ingestion.native import CHUNK_BITS, MOST_HELD, NativeBatch
from hta_sql.ingestion.running.side_by_side import Beside, side_by_side
from hta_sql.ingestion.statements import run
from hta_sql.library.arguments import FIELDS, extraction
from hta_sql.library.sql_files import ingest_sql, query_sql
from hta_sql.library.sqltext import (
    all_rows,
    create_table,
    delete_listed,
    insert,
    replace_view_by_table,
    sort_table,
)

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


class Staged:
    """The staged tables of an ingest while they are filled.

    Columns from the compiled reader are exposed as views without a copy, because copying them into
    tables takes a tenth of the time of an ingest. They are copied if they take too much memory,
    which the engine does not count, or if rows must be added or removed. If there are enough cores
    and memory, the copy runs while the next batch is read.

    Always close it, even after an error: this waits for running copies.

    Args:
        con: The database.
        threads: Number of tables to fill in parallel.
        most_held: Maximum size of columns that are exposed instead of copied [bytes].

    Attributes:
        are_tables: Whether rows are already in tables, either copied or extracted by statements.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, threads: int = 1, most_held: int = 0
    ) -> None:
        self.are_tables = False
        self._con, self._threads, self._most_held = con, threads, most_held
        self._held: list[dict[str, pa.Table]] = []
        self._is_shown = False
        self._is_parsed = False
        self._beside = Beside(con) if threads > 1 and most_held >= 2 * MOST_HELD else None

    def close(self) -> None:
        """Wait for running copies; the database can be closed afterwards."""
        if self._beside:
            self._beside.close()

    def add(self, native: NativeBatch, starts: Mapping[int, int]) -> None:
        """Add the rows from the compiled reader.

        Args:
            native: A batch of the compiled reader.
            starts: Id of the first event of each chunk.
        """
        self._held.append(native.tables([starts[chunk] for chunk in native.events]))
        held = sum(table.nbytes for tables in self._held for table in tables.values())
        is_busy = self._beside and self._beside.is_busy
        if held > self._most_held or (self.are_tables and not is_busy):
            self._copy(self._beside)

    def extract(self, counts: Mapping[str, int]) -> None:
        """Insert the parsed and numbered events of a batch into the staged tables.

        Args:
            counts: Number of events by table.
        """
        self.settle()
        self._is_parsed = True
        con, threads = self._con, self._threads
        run(con, ingest_sql("parse/batch", "batch_events"))
        largest_first = sorted(counts.keys() & set(EXTRACTED), key=lambda table: -counts[table])
        into_table = partial(_extract, into_new=not self.are_tables)
        side_by_side(con, threads, into_table, largest_first)
        if not self.are_tables:
            absent = [table for table in EXTRACTED if table not in counts]
            side_by_side(con, threads, _create_empty, absent)
        self.are_tables = True

    def show(self) -> None:
        """Make the rows visible to statements, in event order; no rows can be added afterwards."""
        if self._held and not self.are_tables:
            for table, rows in self._rows().items():
                self._con.from_arrow(rows).create_view(f"staged_{table}")
            self._is_shown = True
            return
        self.settle()
        if self._is_parsed:
            self.sort()

    def settle(self) -> None:
        """Copy all pending rows to tables, so that rows can be added and removed."""
        if self._is_shown:
            for table in EXTRACTED:
                drop, _ = replace_view_by_table(f"staged_{table}", "")
                run(self._con, drop)
            self._is_shown = False
        if self._beside:
            self._beside.wait()
        if self._held:
            self._copy()

    def remove(self, parts: Collection[int]) -> Counter[str]:
        """Remove the rows of some traces; return the number of rows removed from each table."""
        self.settle()
        removed: Counter[str] = Counter()
        for table in EXTRACTED:
            statement = delete_listed(f"staged_{table}", "part_of(event_id)", "parts")
            ((removed[table],),) = run(self._con, statement, {"parts": sorted(parts)}).fetchall()
        return removed

    def sort(self) -> None:
        """Sort the rows of each table by event.

        Rows from the compiled reader are already sorted; parsed rows of a batch follow them.
        """
        for (table,) in run(self._con, ingest_sql("staged", "out_of_order")).fetchall():
            run(self._con, sort_table(f"staged_{table}", "event_id"))

    def _copy(self, beside: Beside | None = None) -> None:
        """Copy the pending rows, in the background if a background worker is given."""
        statement = insert if self.are_tables else create_table
        rows = {t: r for t, r in self._rows().items() if r.num_rows or not self.are_tables}
        self.are_tables, self._held = True, []
        if beside:
            beside.do(partial(_copy_all, statement, rows))
            return
        largest_first = sorted(rows, key=lambda table: -rows[table].num_rows)
        side_by_side(self._con, self._threads, partial(_copy, statement, rows), largest_first)

    def _rows(self) -> dict[str, pa.Table]:
        return {table: pa.concat_tables([one[table] for one in self._held]) for table in EXTRACTED}


Statement = Callable[[str, str], str]


def _copy(
    statement: Statement, tables: dict[str, pa.Table], con: duckdb.DuckDBPyConnection, table: str
) -> None:
    con.register("native_rows", tables[table])
    run(con, statement(f"staged_{table}", all_rows("native_rows")))
    con.unregister("native_rows")


def _copy_all(
    statement: Statement, tables: dict[str, pa.Table], con: duckdb.DuckDBPyConnection
) -> None:
    for table in tables:
        _copy(statement, tables, con, table)


def number(
    con: duckdb.DuckDBPyConnection,
    first_event_ids: list[int],
    read: Mapping[int, int],
    *,
    is_parsed: bool = True,
) -> dict[int, int]:
    """Return the id of the first event of each chunk of a batch.

    Args:
        con: The database with the parsed events.
        first_event_ids: Id of the first event of each trace in the batch.
        read: Chunk ─▶ number of events, for chunks that the compiled reader has read.
        is_parsed: Whether there are other chunks, which the engine has parsed.
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
    run(con, ingest_sql("parse/batch", "chunk_starts"), values)
    return dict(run(con, query_sql("ingest", "chunk_starts")).fetchall())


def _extract(con: duckdb.DuckDBPyConnection, table: str, *, into_new: bool) -> None:
    """Insert one kind of event of the batch into its table.

    The SELECT is inlined into one statement, without a view. Binding and planning dominate the cost
    of a small rank, and a view is bound at every step.
    """
    select = extraction(table) if table in FIELDS else ingest_sql("parse/extract", table)
    run(con, (create_table if into_new else insert)(f"staged_{table}", select))


_definitions: dict[str, str] = {}
"""Staged table ─▶ its DDL, as the engine inferred it for an earlier rank in this process."""


def _create_empty(con: duckdb.DuckDBPyConnection, table: str) -> None:
    if table in _definitions:
        run(con, _definitions[table])
        return
    _extract(con, table, into_new=True)
    named = {"table_name": f"staged_{table}"}
    ((_definitions[table],),) = run(con, ingest_sql("staged", "table_definition"), named).fetchall()
