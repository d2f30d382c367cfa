"""Selects the rows of a large result for a page, and describes the selection."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hta_sql.library.answers import Term, first_terms
from hta_sql.library.objects import SqlObject
from hta_sql.results.display import is_number

_POINTS = ("start_ns", "end_ns")
"""Suffixes of columns with points in time, whose largest values are merely the latest."""
_NAMED = 2
"""Maximum number of sort columns to name."""


def order_of(analysis: SqlObject | None, table: pa.Table) -> list[Term]:
    """Return the sort columns of an analysis's rows, without constant ones."""
    terms = first_terms(analysis) if analysis else []
    there = set(table.column_names)
    return [t for t in terms if t.name in there and len(table.column(t.name).unique()) > 1]


def largest(table: pa.Table, rows: int, order: list[Term]) -> tuple[pa.Table, str]:
    """Return the rows with the largest values, in their original order.

    Returns:
        The rows, and the column whose largest values were selected: the first descending sort
        column, else the first time column. The name is empty if no row is omitted, or if the first
        rows are returned.
    """
    if table.num_rows <= rows:
        return table, ""
    times = (n for n in table.column_names if n.endswith("_ns") and not n.endswith(_POINTS))
    falling = (t.name for t in order if t.falls and is_number(table.schema.field(t.name).type))
    column = next(falling, "") or next(times, "")
    if not column:
        return table.slice(0, rows), ""
    places = pc.sort_indices(table, sort_keys=[(column, "descending")]).slice(0, rows)
    return table.take(pa.array(sorted(places.to_pylist()), pa.int64())), column


def kept_text(
    shown: int, total: int, column: str, order: list[Term], words: Mapping[str, str]
) -> list[str]:
    """Return a note on which rows are shown and how they are sorted, if some are omitted."""
    if shown == total:
        return []
    if column:
        which = f"The {shown:,} of {total:,} rows with the largest values of “{words[column]}”"
    else:
        which = f"The first {shown:,} of {total:,} rows"
    terms = [f"“{words[t.name]}”{', largest first' * t.falls}" for t in order[:_NAMED]]
    ordered = f", sorted by {', then '.join(terms)}" if terms else ""
    return [f"{which}{ordered}. The SQL below returns all rows."]
