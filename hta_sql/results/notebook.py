"""Renders a result for a notebook: an HTML table in human units, with column descriptions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from markupsafe import Markup

from hta_sql.results.display import Rows, text_columns
from hta_sql.templates import Templates
from hta_sql.text import counted, cut_middle

ROWS = 20
"""Number of rows shown; ``.df()`` has all."""

_CELL = 120

_SENTENCE = 60
"""Minimum length of a text that gets its own width [characters].

Default styles of notebooks make a column with longer text narrow and very tall; marimo's styles
leave no space between columns.
"""


@cache
def _templates() -> Templates:
    return Templates(Path(__file__).parent / "templates")


def result_markup(result: Rows, rows: int = ROWS) -> Markup:
    """Render the first rows of a result as an HTML table with a caption.

    Args:
        result: The rows. Headings have the column descriptions as tooltips.
        rows: Maximum number of rows.
    """
    about = result.analysis
    columns = text_columns(result, rows)
    cells = [
        [(text, cut_middle(text, _CELL), column.is_number) for text in column.cells]
        for column in columns
    ]
    size = counted(len(result), "row") + (f", {rows} shown" if len(result) > rows else "")
    what = f"{about.name}: {about.summary} " if about else ""
    return _templates().render(
        "result",
        columns=columns,
        docs={column.name: column.doc for column in about.columns} if about else {},
        rows=zip(*cells, strict=True),
        sentence=_SENTENCE,
        caption=f"{what}({size}; exact values: .df(), .arrow(), .rows())",
    )
