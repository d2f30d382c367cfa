"""Reads files that are no traces into staged tables: dumps, memory snapshots, execution traces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb

from hta_sql.ingestion.artifacts.dumps import stage_dump
from hta_sql.ingestion.artifacts.execution_traces import stage_execution_trace
from hta_sql.ingestion.artifacts.snapshots import stage_snapshot

_STAGES = {
    "dump": stage_dump,
    "snapshot": stage_snapshot,
    "execution_trace": stage_execution_trace,
}


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
