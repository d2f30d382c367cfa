"""Reading of a file with different settings, which must not change the result."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock, patch

import duckdb

from hta_sql.errors import HtaSqlError
from hta_sql.ingestion import staged_tables, staging
from hta_sql.ingestion.staged_tables import EXTRACTED
from hta_sql.ingestion.staging import DoubtfulCutError, stage_events
from hta_sql.ingestion.trace_batch import TraceBatch
from hta_sql.traces import source
from hta_sql.traces.chunks import CHUNK_BYTES, TraceReader

Row = tuple[Any, ...]
Outcome = dict[str, list[Row]]
"""Table ─▶ sorted rows, or ``error`` if the file is refused."""


class Quarantined(NamedTuple):
    """A row of ``quarantine``."""

    event_id: int | None
    byte_offset: int
    byte_count: int
    is_lost: bool
    reason: str
    excerpt: str


@dataclass(frozen=True)
class Way:
    """Settings for reading a file, which must not change the result."""

    chunk_bytes: int = CHUNK_BYTES
    batch_chunks: int = staging.BATCH_CHUNKS
    threads: int = 1
    careful: bool = False
    memory_limit: str | None = None
    max_bytes: int | None = None
    is_deep: bool = True
    """Whether events are written to their tables, which doubles the time."""
    is_native: bool = True
    """Whether the compiled reader is used if it is available."""
    most_held: int = 0
    """Maximum size of rows that are read in place instead of being copied [bytes]."""


def staged(path: Path, way: Way) -> Outcome:
    """Read a file; return its staged events, quarantine and metadata."""
    try:
        return _staged(path, way)
    except DoubtfulCutError:
        assert not way.careful
        return staged(path, replace(way, careful=True))
    except HtaSqlError as error:
        return {"error": [(str(error),)]}


def _staged(path: Path, way: Way) -> Outcome:
    config: dict[str, Any] = {"threads": way.threads}
    if way.memory_limit:
        config["memory_limit"] = way.memory_limit
    with (
        duckdb.connect(":memory:", config=config) as con,
        patch.object(staging, "BATCH_CHUNKS", way.batch_chunks),
        ExitStack() as patches,
    ):
        if not (way.is_native and way.is_deep):
            patches.enter_context(patch.object(staging, "native_batch", Mock(return_value=None)))
        if not way.is_deep:
            patches.enter_context(patch.object(staged_tables, "_extract", _keep_as_parsed))
            patches.enter_context(patch.object(staged_tables, "_create_empty", Mock()))
            patches.enter_context(patch.object(staged_tables.Staged, "sort", Mock()))
            patches.enter_context(patch.object(staging, "ascend_traces", Mock(return_value=[])))
        if way.max_bytes is not None:
            patches.enter_context(patch.object(source, "ALWAYS_ALLOWED_BYTES", way.max_bytes))
        stream = source.open_trace(str(path))
        reader = TraceReader(stream, str(path), way.chunk_bytes, careful=way.careful)
        with reader.stream:
            events: Counter[str] = stage_events(
                con,
                TraceBatch([nullcontext(reader)], [0]),
                threads=way.threads,
                most_held=way.most_held,
            )
        tables = [table for table in EXTRACTED if events[table]]
        outcome: Outcome = {table: _rows(con, f"staged_{table}") for table in tables}
        outcome["quarantined"] = _rows(con, "quarantined")
        outcome["metadata"] = [(repr(reader.metadata),)]
        outcome["event_count"] = [(events.total(),)]
    return outcome


def _keep_as_parsed(con: duckdb.DuckDBPyConnection, table: str, **_: object) -> None:
    con.execute(
        f"CREATE TABLE IF NOT EXISTS staged_{table} AS "  # noqa: S608 - one of our tables
        "SELECT * EXCLUDE (chunk, position) FROM batch_events LIMIT 0"
    )
    con.execute(
        f"INSERT INTO staged_{table} SELECT * EXCLUDE (chunk, position) "  # noqa: S608
        "FROM batch_events WHERE target = $target",
        {"target": table},
    )


def _rows(con: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    return sorted(con.table(table).fetchall(), key=repr)


def rows_by_event(outcome: Outcome) -> dict[int, Row]:
    """Return the row of each stored event by event id."""
    rows: dict[int, Row] = {}
    for table in EXTRACTED:
        found = outcome.get(table, [])
        of_table = {row[0]: row for row in found}
        # A counter event has a row for each of its series; any other event has one row.
        assert table == "counters" or len(of_table) == len(found)
        assert not rows.keys() & of_table.keys()
        rows |= of_table
    return rows


def quarantine(outcome: Outcome) -> list[Quarantined]:
    """Return the lost and repaired events in file order."""
    rows = [Quarantined(*row) for row in outcome["quarantined"]]
    return sorted(rows, key=lambda row: (row.byte_offset, row.is_lost))


def check_nothing_vanished(outcome: Outcome) -> None:
    """Assert that every event in the file is either stored or lost."""
    kept = set(rows_by_event(outcome))
    lost = {row.event_id for row in quarantine(outcome) if row.is_lost} - {None}
    assert not kept & lost
    assert kept | lost == set(range(outcome["event_count"][0][0]))
