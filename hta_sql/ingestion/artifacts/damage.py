"""Quarantines damaged parts of Flight Recorder dumps, memory snapshots and execution traces."""

from __future__ import annotations

import logging
from collections import Counter

import duckdb

from hta_sql.ingestion.staging import prepare
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql

log = logging.getLogger(__name__)


def report_damage(
    con: duckdb.DuckDBPyConnection,
    rows: Counter[str],
    kind: str,
    path: str | None,
    problem: str | None,
    *,
    odd: str | None,
) -> None:
    """Log and quarantine what a file lacks, if anything.

    Args:
        con: The database of the rank.
        rows: Number of rows by table, to which the row in quarantine is added.
        kind: Kind of the file, such as ``Memory snapshot``.
        path: Path of the file.
        problem: What is missing because the file is damaged; None if nothing is.
        odd: Which values are NULL because they are odd, in a file that is otherwise whole.
    """
    if problem:
        log.warning("%s %r is damaged: %s. The intact part was read.", kind, path, problem)
        _quarantine(con, kind, problem)
    elif odd:
        log.warning("%s %r has odd values: %s.", kind, path, odd)
        _quarantine(con, f"{kind} values", odd)
    else:
        return
    rows["quarantine"] = 1


def _quarantine(con: duckdb.DuckDBPyConnection, kind: str, problem: str) -> None:
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
