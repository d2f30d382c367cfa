"""Lines below a table about rows and columns that it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from hta_sql.results.fitting import Layout
from hta_sql.text import PLAIN_WIDTH, cut_middle

NAMED_COLUMNS = 12
"""Maximum number of hidden columns to name below the table."""

NARROWEST = 20
"""Minimum width of a line [characters]."""


def footer(
    layout: Layout, counts: tuple[int, int], width: int, rows_remedy: str, columns_remedy: str
) -> Iterator[str]:
    """Yield the lines, wrapped at a width.

    Args:
        layout: What the table shows.
        counts: Number of rows in the table, and in the result.
        width: Line width [characters].
        rows_remedy: How to get the remaining rows.
        columns_remedy: How to get the remaining columns.
    """
    shown_count, row_count = counts
    texts = [*_constants(layout, "all rows" if shown_count == row_count else "all shown rows")]
    if shown_count < row_count:
        count = f"{shown_count:,} of {row_count:,} rows"
        texts.append("; ".join(filter(None, [count, rows_remedy])))
    if names := layout.hidden:
        more = ", ..." if len(names) > NAMED_COLUMNS else ""
        hidden = f"columns not shown: {', '.join(names[:NAMED_COLUMNS])}{more}"
        texts.append("; ".join(filter(None, [hidden, columns_remedy])))
    if texts:
        yield ""
    for text in texts:
        yield from wrap(
            f"({text})",
            max(width, NARROWEST),
            subsequent_indent=" ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _constants(layout: Layout, rows: str) -> Iterator[str]:
    """Yield the columns that have the same text, and those without a value, in all shown rows."""
    known = [c for c in layout.same if not c.is_unknown]
    if known:
        texts = [f"{c.name} = {cut_middle(c.cells[0], PLAIN_WIDTH)}" for c in known]
        yield f"the same in {rows}: {'; '.join(texts)}"
    if empty := [c.name for c in layout.same if c.is_unknown]:
        yield f"empty in {rows}: {', '.join(empty)}"
