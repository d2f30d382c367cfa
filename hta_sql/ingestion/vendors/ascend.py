"""Traces of the Ascend profiler (``trace_view.json``): device rows are identified by process names.

Kineto gives each event a category, but Ascend's device rows have none. Their events are staged in
other_events, and moved after the whole file is read, because process names may be at its end.
"""

from __future__ import annotations

from collections import Counter

import duckdb

from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql


def ascend_traces(con: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the numbers of the staged traces that the Ascend profiler wrote."""
    found = run(con, ingest_sql("ascend/move", "by_ascend")).fetchall()
    return [part for (part,) in found]


def adopt_ascend_events(con: duckdb.DuckDBPyConnection, events: Counter[str]) -> Counter[str]:
    """Move Ascend's device activity and task queue to the tables that other vendors use.

    Args:
        con: The database with the staged tables of one Ascend trace.
        events: Number of events by table.

    Returns:
        Number of events by table after the move.
    """
    run(con, ingest_sql("ascend/shapes"))
    run(con, ingest_sql("ascend/move", "device_events"))
    moved = Counter({table: _inserted(con, table) for table in ("gpu_ops", "runtime_calls")})
    run(con, ingest_sql("ascend/move", "drop_moved"))
    return events + moved - Counter({"other_events": moved.total()})


def _inserted(con: duckdb.DuckDBPyConnection, table: str) -> int:
    ((rows,),) = run(con, ingest_sql("ascend/move", table)).fetchall()
    return int(rows)
