"""Lines below a table about rows and columns that it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from hta_sql.results.fitting import TextColumn
from hta_sql.text import PLAIN_WIDTH, cut_middle

NAMED_COLUMNS = 12
"""Maximum number of hidden columns to name below the table."""

_NARROWEST = 20
"""Minimum width of a line [characters]."""


@dataclass(frozen=True)
class Omitted:
    """What a table does not show.

    Attributes:
        same: Columns whose text is the same, or unknown, in all shown rows.
        hidden: Names of the other columns that are not shown, most important first.
        shown_count: Number of rows in the table.
        row_count: Number of rows of the result.
    """

    same: list[TextColumn]
    hidden: list[str]
    shown_count: int
    row_count: int


def footer(omitted: Omitted, width: int, rows_remedy: str, columns_remedy: str) -> Iterator[str]:
    """Yield the lines, wrapped at a width.

    Args:
        omitted: What the table does not show.
        width: Line width [characters].
        rows_remedy: How to get the remaining rows.
        columns_remedy: How to get the remaining columns.
    """
    texts = [*_constants(omitted)]
    if omitted.shown_count < omitted.row_count:
        count = f"{omitted.shown_count:,} of {omitted.row_count:,} rows"
        texts.append("; ".join(filter(None, [count, rows_remedy])))
    if names := omitted.hidden:
        more = ", ..." if len(names) > NAMED_COLUMNS else ""
        hidden = f"columns not shown: {', '.join(names[:NAMED_COLUMNS])}{more}"
        texts.append("; ".join(filter(None, [hidden, columns_remedy])))
    if texts:
        yield ""
    for text in texts:
        yield from wrap(
            f"({text})",
            max(width, _NARROWEST),
            subsequent_indent=" ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _constants(omitted: Omitted) -> Iterator[str]:
    """Yield the columns that have the same text, and those without a value, in all shown rows."""
    rows = "all rows" if omitted.shown_count == omitted.row_count else "all shown rows"
    known = [c for c in omitted.same if not c.is_unknown]
    if known:
        texts = [f"{c.name} = {cut_middle(c.cells[0], PLAIN_WIDTH)}" for c in known]
        yield f"the same in {rows}: {'; '.join(texts)}"
    if empty := [c.name for c in omitted.same if c.is_unknown]:
        yield f"empty in {rows}: {', '.join(empty)}"
