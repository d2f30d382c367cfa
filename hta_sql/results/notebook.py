"""A result as a notebook shows it: an HTML table in human units, with what the columns mean."""

from __future__ import annotations

import html

from hta_sql.results.display import Rows, text_columns
from hta_sql.text import cut_middle

ROWS = 20
"""So many rows are shown; ``.df()`` has all."""

_CELL = 120
_SENTENCE = 60
_ALIGNED = ' style="text-align: {}; {}; padding: 0 0.6em"'
"""A notebook's own rules make a narrow, endless column of a long text, to the right; marimo's leave no room between."""


def result_markup(result: Rows, rows: int = ROWS) -> str:
    """Write the first rows of a result as an HTML table, with a line about what it is.

    Args:
        result: What to write. Headings have the words of their columns, which a pointer shows.
        rows: Rows at most.
    """
    about = result.analysis
    docs = {column.name: column.doc for column in about.columns} if about else {}
    columns = text_columns(result, rows)
    head = "".join(
        f'<th title="{html.escape(docs.get(column.name, ""))}"{_style(column.name, column.is_number)}>'
        f"{html.escape(column.name)}</th>"
        for column in columns
    )
    cells = [
        [f"<td{_style(text, column.is_number)}>{_text(text)}</td>" for text in column.cells]
        for column in columns
    ]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    total = len(result)
    told = f"{total:,} row{'' if total == 1 else 's'}" + (f", {rows} shown" if total > rows else "")
    what = f"{about.name}: {about.summary} " if about else ""
    caption = f"{html.escape(what)}({told}; exact values: .df(), .arrow(), .rows())"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x: auto">{table}</div><p>{caption}</p>'


def _style(text: str, is_number: bool) -> str:
    width = "min-width: 30em" if len(text) > _SENTENCE else "white-space: nowrap"
    return _ALIGNED.format("right" if is_number else "left", width)


def _text(text: str) -> str:
    shown = html.escape(cut_middle(text, _CELL))
    return shown if len(text) <= _CELL else f'<span title="{html.escape(text)}">{shown}</span>'
