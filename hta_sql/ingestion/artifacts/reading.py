"""Reads files that are no traces into staged tables: dumps, memory snapshots, execution traces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb

from hta_sql.ingestion.artifacts.dumps import stage_dump
from hta_sql.ingestion.artifacts.execution_traces import stage_execution_trace
from hta_sql.ingestion.artifacts.snapshots import stage_snapshot
from hta_sql.machine import size_of

READER_SHARE = 16
"""Bytes of a pickled snapshot for which the reader keeps one: 8 of the 200 or more of an event, and the copy of an array
that grows."""

_STAGES = {
    "dump": stage_dump,
    "snapshot": stage_snapshot,
    "execution_trace": stage_execution_trace,
}


def engine_memory(limit: str, size: int) -> str:
    """Return the memory of the engine, less what the reader of a large snapshot takes of it; at least half of it.

    Args:
        limit: Memory of the engine next to a reader that keeps nothing.
        size: Size of the snapshot [bytes]; 0 for other files.
    """
    if not size:
        return limit
    given = size_of(limit)
    return f"{max(given - size // READER_SHARE, given // 2) >> 10}KiB"


def stage_artifact(
    con: duckdb.DuckDBPyConnection, kind: str, path: str
) -> tuple[Counter[str], dict[str, Any]]:
    """Read a file of a kind of ``ARTIFACTS`` into staged tables.

    Returns:
        Number of rows by table, and what the table ranks shows as metadata.

    Raises:
        TraceFormatError: The file is damaged, or of another kind.
    """
    return _STAGES[kind](con, path)
