"""Fills the staged tables of files that are not traces, one batch of rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.values import Values
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import all_rows, create_table
from hta_sql.traces.source import file_bytes

Row = tuple[Any, ...]

BATCH_ROWS = 20_000


class StagedRows:
    """Rows of staged tables, written in batches.

    Args:
        con: The database of the rank.
        schemas: Columns of each table; the tables are created without rows.

    Attributes:
        counts: Number of rows by table.
        values: Converts the values of the file.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, schemas: Mapping[str, pa.Schema], path: str | None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.values = Values(file_bytes(path) if path else 0)
        self._con, self._schemas = con, schemas
        self._waiting: dict[str, list[Row]] = {table: [] for table in schemas}
        for table, schema in schemas.items():
            con.register("artifact_rows", schema.empty_table())
            run(con, create_table(f"staged_{table}", all_rows("artifact_rows")))
            con.unregister("artifact_rows")

    def add(self, table: str, row: Row) -> None:
        """Add a row to a table."""
        self.counts[table] += 1
        self._waiting[table].append(row)
        if len(self._waiting[table]) >= BATCH_ROWS:
            self._write(table)

    def extend(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows to a table."""
        self.counts[table] += len(rows)
        self._waiting[table] += rows
        if len(self._waiting[table]) >= BATCH_ROWS:
            self._write(table)

    def flush(self) -> None:
        """Write all pending rows."""
        for table in self._schemas:
            self._write(table)

    def _write(self, table: str) -> None:
        rows, self._waiting[table] = self._waiting[table], []
        if not rows:
            return
        schema = self._schemas[table]
        columns = [
            pa.array(values, type_)
            for values, type_ in zip(zip(*rows, strict=True), schema.types, strict=True)
        ]
        self._con.register("artifact_rows", pa.Table.from_arrays(columns, schema=schema))
        run(self._con, ingest_sql("link/artifact_rows", table))
        self._con.unregister("artifact_rows")
