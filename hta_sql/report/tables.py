"""A result as an HTML table that sorts by a click, cut to so many rows, with a word about the rest."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from hta_sql.results.display import TableRows, TextColumn, text_columns
from hta_sql.words import cut_middle

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.results.display import Rows

CELL_CHARACTERS = 200
LONG = 36
"""A longer text may take several lines."""


def table_markup(result: Rows, rows: int) -> str:
    """Write a table: a heading that sorts, cells in human units with the exact value behind them.

    Args:
        result: What to write.
        rows: Rows at most. Of more, those with the largest value in the first column of times
            are kept, in the order of the result, and a line says so.
    """
    total = len(result)
    table, column = _largest(_told_apart(result.arrow()), rows)
    shown = TableRows(table, result.analysis)
    texts = text_columns(shown)
    docs = {c.name: c.doc for c in result.analysis.columns} if result.analysis else {}
    head = "".join(_heading(text, docs.get(text.name, "")) for text in texts)
    exact = [values.to_pylist() for values in table.columns]
    body = "".join(
        "<tr>"
        + "".join(_cell(text, text.cells[row], exact[at][row]) for at, text in enumerate(texts))
        + "</tr>"
        for row in range(len(shown))
    )
    markup = (
        f'<div class="table" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    if len(shown) < total:
        which = f" with the highest {html.escape(column)}" if column else " that come first"
        markup += (
            f'<p class="quiet">The {len(shown):,} of {total:,} rows{which}; '
            f"{total - len(shown):,} are left out. The SQL below gives all of them.</p>"
        )
    return markup


def _told_apart(table: pa.Table) -> pa.Table:
    """Leave out the run where there is one alone: it stands in the title."""
    if "run" not in table.column_names or table.num_columns == 1:
        return table
    runs = table.column("run").unique()
    return table.drop_columns(["run"]) if len(runs) == 1 else table


def _largest(table: pa.Table, rows: int) -> tuple[pa.Table, str]:
    """Keep the rows with the highest times, in the order in which they stand."""
    if table.num_rows <= rows:
        return table, ""
    column = next((name for name in table.column_names if name.endswith("_ns")), "")
    if not column:
        return table.slice(0, rows), ""
    import pyarrow as pa  # noqa: PLC0415 - only where used
    import pyarrow.compute as pc  # noqa: PLC0415

    places = pc.sort_indices(table, sort_keys=[(column, "descending")]).slice(0, rows)
    return table.take(pa.array(sorted(places.to_pylist()), pa.int64())), column


def _heading(text: TextColumn, doc: str) -> str:
    kind = ' class="number"' if text.is_number else ""
    # A name may break behind its underscores, so that a column is no wider than its numbers.
    name = html.escape(text.name).replace("_", "_<wbr>")
    return f'<th scope="col"{kind} title="{html.escape(doc)}"><button type="button">{name}</button></th>'


def _cell(column: TextColumn, text: str, value: Any) -> str:
    shown = html.escape(cut_middle(text, CELL_CHARACTERS))
    if not column.is_number:
        return f"<td>{shown}</td>" if len(text) <= LONG else f'<td class="long">{shown}</td>'
    exact = "" if value is None else str(value)
    sorted_by = "" if exact == text else f' data-v="{exact}"'
    return f'<td class="number"{sorted_by}>{shown}</td>'
