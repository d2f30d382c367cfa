"""Derives the links that analyses need, in SQL: clock, steps, call tree, launches, kernel classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.call_tree import CALL_TREE_SCHEMA, call_trees
from hta_sql.ingestion.native import best_build
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql, query_sql, sql_root
from hta_sql.library.sqltext import first_match_macro, sort_table
from hta_sql.store.catalog.shared_engine import extra_connections

CALL_TREE_BATCH_ROWS = 1 << 15
"""Number of host events in memory while the call tree is built.

Arrays of this size fit into the CPU cache, and cost a quarter less than arrays of 500,000 rows.
"""


NS_OF_A_YEAR = 365.25 * 86400 * 1e9

MAX_YEARS = (1 << 60) / NS_OF_A_YEAR
"""Maximum total duration of a rank's events, including nested events [years].

A day of 100 threads with 50 nested calls each is less than half of this.
"""


def link_events(
    con: duckdb.DuckDBPyConnection,
    jobs: Sequence[dict[str, Any]],
    kernel_classes: str | None = None,
) -> None:
    """Derive the links that analyses need: clock, steps, call tree, launches, kernel classes.

    Args:
        con: The database with the staged events of the traces.
        jobs: Rows of the table ``job``, one per trace; see :func:`hta_sql.ingestion.rank_job.job_row`.
        kernel_classes: Path of the user's own rules for kernel classes.

    Raises:
        TraceFormatError: The durations of a trace add up to more than the maximum.
    """
    run(con, ingest_sql("link/rank_frames", "job"), {"jobs": jobs})
    _load_class_rules(con, kernel_classes)
    run(con, ingest_sql("link/rank_frames", "rank_clock"))
    for name in ("profiler_steps", "step_windows", "last_step"):
        run(con, ingest_sql("link/steps", name))
    refuse_ages(con, {job["part"]: job["source"] for job in jobs})
    run(con, ingest_sql("link/rank_frames", "rank_frame"))
    run(con, ingest_sql("link/odd_arguments"))
    run(con, ingest_sql("link/call_tree", "host_events"))
    _build_call_tree(con)
    run(con, ingest_sql("link/forward_operators"))
    for name in ("launches", "device_steps", "operators_by_external_id"):
        run(con, ingest_sql("link/launches", name))
    run(con, ingest_sql("link/device_links"))
    # Sorted after the join, because with a sort in the join, 14 million events exceed 400 MiB.
    run(con, sort_table("device_links", "event_id"))


def _build_call_tree(con: duckdb.DuckDBPyConnection) -> None:
    """Sort the host events in the engine and build the call tree from the stream."""
    # One connection reads the rows while the other writes the tree.
    (sorted_events,) = extra_connections(con)
    with sorted_events:
        reader = sorted_events.table("host_events").to_arrow_reader(CALL_TREE_BATCH_ROWS)
        steps = run(con, ingest_sql("link/steps", "steps_in_order")).fetchall()
        tree = pa.RecordBatchReader.from_batches(
            CALL_TREE_SCHEMA, call_trees(reader, steps, best_build())
        )
        con.register("call_tree_rows", tree)
        run(con, ingest_sql("link/call_tree", "call_tree"))
        con.unregister("call_tree_rows")


def _load_class_rules(con: duckdb.DuckDBPyConnection, kernel_classes: str | None) -> None:
    """Classify kernels by the rules in kernel_classes.csv; the user's own rules take precedence."""
    own = [kernel_classes] if kernel_classes else []
    files = [*own, str(sql_root() / "ingest" / "kernel_classes.csv")]
    run(con, ingest_sql("link/kernel_classes", "class_rules"), {"files": files})
    run(con, ingest_sql("link/kernel_classes", "kernel_names"))
    matching = run(con, ingest_sql("link/kernel_classes", "rules_in_order")).fetchall()
    # The macro needs at least one rule; this rule matches nothing.
    run(con, first_match_macro("first_rule", matching or [(0, "a^")]))
    run(con, ingest_sql("link/kernel_classes", "kernel_classes"))


def refuse_ages(con: duckdb.DuckDBPyConnection, paths: Mapping[int, str]) -> None:
    """Raise if the total duration of a trace's events is implausible.

    Args:
        con: The database with the table ``rank_clock``.
        paths: Number of a trace ─▶ its path.

    Raises:
        TraceFormatError: The durations of a trace add up to more than the maximum.
    """
    totals = dict(run(con, query_sql("ingest", "total_durations")).fetchall())
    for part, path in paths.items():
        years = (totals[part] or 0) / NS_OF_A_YEAR
        if years > MAX_YEARS:
            raise TraceFormatError(
                f"{path}: the event durations add up to {years:,.0f} years, "
                f"more than the maximum of {MAX_YEARS:.0f} years."
            )
