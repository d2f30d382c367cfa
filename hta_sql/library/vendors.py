"""Device vendors: event categories, call prefixes, device names, from ``sql/tables/vendors.csv``.

The table ``vendors``, documented in ``sql/tables/vendors.sql``, has the same rows.
"""

from __future__ import annotations

import csv
import re
from functools import cache

from hta_sql.errors import LibraryError
from hta_sql.library.sql_files import sql_root
from hta_sql.library.sqltext import lookup_macro

VENDORS = "tables/vendors.csv"
KINDS = {"kernel", "memcpy", "memset", "sync"}
FACTS = {"category", "call_prefix", "device_type", "device_name", "backend", "torch_device"}
UNSTORED = "other_events"
"""Table of events whose category belongs to no other table."""


@cache
def _lines() -> list[dict[str, str]]:
    """Return the lines of vendors.csv.

    Raises:
        LibraryError: A line has an unknown fact, or a category without table or kind.
    """
    path = sql_root() / VENDORS
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["fact"] not in FACTS:
            raise LibraryError(
                f"{path}: the fact {row['fact']!r} is not one of {', '.join(sorted(FACTS))}."
            )
        is_category = row["fact"] == "category"
        if is_category and (
            (row["kind"] in KINDS) != (row["stored_table"] == "gpu_ops") or not row["stored_table"]
        ):
            raise LibraryError(
                f"{path}: category {row['value']!r} needs a table. If the table is gpu_ops, it also "
                f"needs a kind ({', '.join(sorted(KINDS))}); otherwise, it must not have one."
            )
    return rows


def known(fact: str) -> list[str]:
    """Return the values of a fact for all vendors, such as every ``call_prefix``."""
    return [row["value"] for row in _lines() if row["fact"] == fact]


def alternatives(fact: str, *, with_stars: bool = True) -> str:
    """Return a regular expression that matches any value of a fact.

    Args:
        fact: Name of the fact, such as ``call_prefix``.
        with_stars: Whether to include the values with a star, which matches word characters.
    """
    # Longest first, because a regular expression takes the first alternative that matches.
    values = sorted(known(fact), key=lambda value: (-len(value), value))
    if not with_stars:
        values = [value for value in values if "*" not in value]
    return "|".join(re.escape(value).replace(r"\*", r"\w+") for value in values)


@cache
def call_name() -> re.Pattern[str]:
    """Return a pattern for whole names of runtime or driver calls: cudaMalloc, hipFree."""
    return re.compile(rf"({alternatives('call_prefix')})[A-Z]\w*$")


def category_tables() -> dict[str, str]:
    """Return category ─▶ table, except for categories whose table is other_events."""
    return {
        row["value"]: row["stored_table"]
        for row in _lines()
        if row["fact"] == "category" and row["stored_table"] != UNSTORED
    }


def category_lines() -> list[str]:
    """Return the lines that assign events to tables; traces are ingested again if they change."""
    fields = ("value", "stored_table", "kind", "lane_is_stream")
    stored = category_tables()
    lines = [row for row in _lines() if row["fact"] == "category" and row["value"] in stored]
    return [",".join(row[field] for field in fields) for row in lines]


@cache
def category_macros() -> tuple[str, ...]:
    """Return the statements that create ``category_table``, ``category_kind``, ``lane_is_stream``."""
    device = [row for row in _lines() if row["stored_table"] == "gpu_ops"]
    kinds = {row["value"]: row["kind"] for row in device}
    lanes = {row["value"]: "true" for row in device if row["lane_is_stream"] == "true"}
    return (
        lookup_macro("category_table", category_tables(), "event_target", UNSTORED),
        lookup_macro("category_kind", kinds, "VARCHAR", "kernel"),
        lookup_macro("lane_is_stream", lanes, "BOOLEAN", "false"),
    )
