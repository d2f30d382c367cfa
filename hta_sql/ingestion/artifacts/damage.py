"""Quarantines what is damaged of a Flight Recorder dump, a memory snapshot or an execution trace."""

from __future__ import annotations

import duckdb

from hta_sql.ingestion.staging import prepare
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql


def quarantine_damage(con: duckdb.DuckDBPyConnection, kind: str, problem: str) -> None:
    """Fill the tables that the table quarantine is written from with one row.

    Args:
        con: The database of the rank.
        kind: What the file is. SQL distinguishes damaged files from damaged events of traces by it.
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
