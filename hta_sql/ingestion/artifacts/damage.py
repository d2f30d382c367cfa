"""Quarantines damaged parts of Flight Recorder dumps, memory snapshots and execution traces."""

from __future__ import annotations

import duckdb

from hta_sql.ingestion.staging import prepare
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql


def quarantine_damage(con: duckdb.DuckDBPyConnection, kind: str, problem: str) -> None:
    """Create the staged tables behind the table ``quarantine``, with one row about the damage.

    Args:
        con: The database of the rank.
        kind: Kind of the file, by which SQL distinguishes damaged files from damaged events.
        problem: What is missing, and why.
    """
    prepare(con)
    run(con, ingest_sql("link/dump_frames", "odd_arguments"))
    flaw = {
        "event_id": None,
        "byte_offset": None,
        "byte_count": None,
        "is_lost": True,
        "reason": f"{kind}: {problem}",
        "excerpt": None,
    }
    run(con, ingest_sql("quarantine", "add_quarantined"), flaw)
