"""A result as a notebook shows it: an HTML table in human units, with what the columns mean."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from hta_sql.results.display import text_columns
from hta_sql.words import cut_middle

if TYPE_CHECKING:
    from hta_sql.results.display import Rows

ROWS = 20
"""So many rows are shown; ``.df()`` has all."""

_CELL = 120
_ALIGNED = ' style="white-space: nowrap; text-align: {}"'
"""A notebook's own rule is right; a long text would be wrapped into a narrow, endless column."""


def result_markup(result: Rows, rows: int = ROWS) -> str:
    """Write the first rows of a result as an HTML table, with a line about what it is.

    Args:
        result: What to write. Headings have the words of their columns, which a pointer shows.
        rows: Rows at most.
    """
    about = result.analysis
    docs = {column.name: column.doc for column in about.columns} if about else {}
    columns = [
        (column, _ALIGNED.format("right" if column.is_number else "left"))
        for column in text_columns(result, rows)
    ]
    head = "".join(
        f'<th title="{html.escape(docs.get(column.name, ""))}"{aligned}>{html.escape(column.name)}</th>'
        for column, aligned in columns
    )
    cells = [
        [f"<td{aligned}>{_text(text)}</td>" for text in column.cells] for column, aligned in columns
    ]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    total = len(result)
    told = f"{total:,} row{'' if total == 1 else 's'}" + (f", {rows} shown" if total > rows else "")
    what = f"{about.name}: {about.summary} " if about else ""
    caption = f"{html.escape(what)}({told}; exact values: .df(), .arrow(), .rows())"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{caption}</p>"


def _text(text: str) -> str:
    shown = html.escape(cut_middle(text, _CELL))
    return shown if len(text) <= _CELL else f'<span title="{html.escape(text)}">{shown}</span>'
