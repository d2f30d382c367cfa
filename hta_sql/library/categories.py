"""What the recorders of each vendor call the kinds of events: ``sql/ingest/vendors.csv``.

A line is a category: the ``cat`` of an event, with a star for any beginning. Its columns:

    category        as the trace writes it
    table           table that its spans go to
    kind            what the device did, of gpu_ops: kernel, memcpy, memset or sync
    is_lane_stream  of gpu_ops: whether the thread id is the stream where no argument says it
    vendor          whose recorder writes it, where it is one vendor's alone
"""

from __future__ import annotations

import csv
from functools import cache

from hta_sql.errors import LibraryError
from hta_sql.library.sql_files import sql_root
from hta_sql.library.sqltext import lookup_macro

KINDS = {"kernel", "memcpy", "memset", "sync"}


@cache
def _lines() -> list[dict[str, str]]:
    """Read the list.

    Raises:
        LibraryError: A line is not understood.
    """
    path = sql_root() / "ingest" / "vendors.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if (row["kind"] in KINDS) != (row["table"] == "gpu_ops") or not row["table"]:
            raise LibraryError(
                f"{path}: category {row['category']!r} needs a table, and in gpu_ops (only there) a "
                f"kind: {', '.join(sorted(KINDS))}."
            )
    return rows


def known_categories() -> list[str]:
    """List the categories, as the list writes them."""
    return [row["category"] for row in _lines()]


def category_tables() -> dict[str, str]:
    """Return the table that each category goes to."""
    return {row["category"]: row["table"] for row in _lines()}


@cache
def category_macros() -> tuple[str, ...]:
    """Return the statements that create ``category_table``, ``category_kind``, ``lane_is_stream``."""
    tables = category_tables()
    device = [row for row in _lines() if row["table"] == "gpu_ops"]
    kinds = {row["category"]: row["kind"] for row in device}
    lanes = {row["category"]: "true" for row in device if row["is_lane_stream"] == "true"}
    return (
        lookup_macro("category_table", tables, "event_target", "other_events"),
        lookup_macro("category_kind", kinds, "VARCHAR", "kernel"),
        lookup_macro("lane_is_stream", lanes, "BOOLEAN", "false"),
    )
