"""Reads files that are not traces into staged tables: dumps, memory snapshots, execution traces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb

from hta_sql.ingestion.artifacts.dumps import stage_dump
from hta_sql.ingestion.artifacts.execution_traces import stage_execution_trace
from hta_sql.ingestion.artifacts.limited import READER_SHARE
from hta_sql.ingestion.artifacts.snapshots import stage_snapshot
from hta_sql.machine import size_of

_STAGES = {
    "dump": stage_dump,
    "snapshot": stage_snapshot,
    "execution_trace": stage_execution_trace,
}


def engine_memory(limit: str, size: int) -> str:
    """Return the memory limit of the engine, reduced by the memory of the snapshot reader.

    At least half of the limit remains.

    Args:
        limit: Memory limit of the engine if the reader needed no memory.
        size: Size of the snapshot [bytes]; 0 for other files.
    """
    if not size:
        return limit
    given = size_of(limit)
    return f"{max(given - size // READER_SHARE, given // 2) >> 10}KiB"


def stage_artifact(
    con: duckdb.DuckDBPyConnection, kind: str, path: str
) -> tuple[Counter[str], dict[str, Any]]:
    """Read a file of one of the kinds in ``ARTIFACTS`` into staged tables.

    Returns:
        Number of rows by table, and the metadata for the table ranks.

    Raises:
        TraceFormatError: The file is damaged, or is of a different kind.
    """
    return _STAGES[kind](con, path)
