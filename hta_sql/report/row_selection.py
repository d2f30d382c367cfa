"""Which rows of a large result a page keeps, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hta_sql.library.answers import Term, first_terms
from hta_sql.library.objects import SqlObject
from hta_sql.results.display import is_number

_POINTS = ("start_ns", "end_ns")
"""When, not how long: the highest are only the latest."""
_NAMED = 2
"""So many columns of the order are named."""


def order_of(analysis: SqlObject | None, table: pa.Table) -> list[Term]:
    """Tell by which columns rows of an analysis are ordered; what is the same in all of them orders none."""
    terms = first_terms(analysis) if analysis else []
    there = set(table.column_names)
    return [t for t in terms if t.name in there and len(table.column(t.name).unique()) > 1]


def largest(table: pa.Table, rows: int, order: list[Term]) -> tuple[pa.Table, str]:
    """Keep rows with the largest values, in the order in which they stand.

    Returns:
        The rows; and the column: of those that the rows are ordered by, the first that falls, else the first of
        times. Empty where no row is left out, or the first ones are kept.
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
    """Return a note that says which rows are on the page, in which order, if some are left out."""
    if shown == total:
        return []
    if column:
        which = (
            f"Of {total:,} rows the {shown:,} with the largest values of “{words[column]}” are here"
        )
    else:
        which = f"Of {total:,} rows the first {shown:,} are here"
    terms = [f"“{words[t.name]}”{', largest first' * t.falls}" for t in order[:_NAMED]]
    ordered = f"; they are in the order of {', then '.join(terms)}" if terms else ""
    return [f"{which}{ordered}. The SQL below gives all of them."]
