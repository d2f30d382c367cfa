"""Prints a result as an aligned table in human units that fits the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Protocol

from hta_sql.results.cells import NULL, cell_text, units_of_rows
from hta_sql.results.fitting import GAP, TextColumn, lay_out
from hta_sql.results.footer import NARROWEST, footer
from hta_sql.results.lower_bounds import mark_lower_bounds
from hta_sql.text import PLAIN_WIDTH, TABLE_ROWS, cut_column, text_width

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.library.objects import SqlObject


class Shown(Protocol):
    """Rows that can be printed as a table."""

    @property
    def analysis(self) -> SqlObject | None:
        """The analysis of the rows, which defines their units."""

    @property
    def given(self) -> Sequence[str]:
        """Parameters given by the caller, each of which may be the reason for an empty result."""

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return (name, whether numeric, first values) per column; ``max_rows`` 0: all values."""

    def __len__(self) -> int: ...


class Rows(Shown, Protocol):
    """Rows that can be printed and written, such as :class:`hta_sql.results.result.Result`."""

    def arrow(self) -> pa.Table:
        """Return the rows."""


@dataclass(frozen=True)
class TableRows:
    """Rows of an Arrow table, for rows that are not a complete query result."""

    table: pa.Table
    analysis: SqlObject | None = None
    given: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """Return the rows."""
        return self.table

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return (name, whether numeric, first values) per column; ``max_rows`` 0: all values."""
        return head_of(self.table, max_rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def print_table(
    result: Shown,
    max_rows: int = TABLE_ROWS,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    rows_remedy: str = "",
    columns_remedy: str = "",
    no_rows: str = "",
) -> None:
    """Print the first rows of a result as a table.

    Times, sizes and percentages are printed in human units, long strings are cut in the middle, and
    control characters are escaped: for exact values use ``.df()``, ``.rows()`` or a file format. A
    note below the table names the rows and columns that are not shown.

    Args:
        result: Rows to print.
        max_rows: Maximum number of rows; 0 prints all.
        file: Output stream; default: stdout.
        width: Line width [characters]; default: ``COLUMNS``, else the terminal's, else 200.
        rows_remedy: How to get the remaining rows; printed if any are left out.
        columns_remedy: How to get the remaining columns; printed if any are left out.
        no_rows: Why the result is empty, if the caller knows; default: what the analysis needs.
    """
    file = file or sys.stdout
    room = width or shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    columns = text_columns(result, max_rows)
    layout = lay_out(columns, _shown(result.analysis, columns), room)
    lines = [*_lines(layout.columns), *_wrapped_notes(layout.notes, room)]
    if len(result):
        counts = (len(columns[0].cells), len(result))
        lines += footer(layout, counts, room, rows_remedy, columns_remedy)
        lines += _without_needed(result.analysis, columns)
    else:
        lines.append(no_rows or _reason_for_none(result))
    for line in lines:
        file.write(line.rstrip() + "\n")


def _shown(analysis: SqlObject | None, columns: list[TextColumn]) -> list[str]:
    """Return the analysis's ``Shown:`` columns, or none if the caller chose the columns."""
    is_whole = analysis is not None and len(columns) == len(analysis.columns)
    return analysis.shown if analysis and is_whole else []


def _without_needed(analysis: SqlObject | None, columns: list[TextColumn]) -> list[str]:
    """Return the analysis's sentence about a column that it needs, if no shown row has a value."""
    name, sentence = analysis.needed if analysis else ("", "")
    cells = {cell for column in columns if column.name == name for cell in column.cells}
    return [sentence] if cells == {NULL} else []


def _wrapped_notes(notes: list[str], width: int) -> Iterator[str]:
    if notes:
        yield ""
    for number, text in enumerate(notes, 1):
        mark = f"[{number}] "
        lines = wrap(text, max(width - len(mark), NARROWEST)) or [""]
        yield mark + lines[0]
        yield from (" " * len(mark) + line for line in lines[1:])


def text_columns(result: Shown, max_rows: int = 0) -> list[TextColumn]:
    """Format the first ``max_rows`` rows of a result, column by column; 0 formats all rows."""
    written = []
    head = result.head(max_rows)
    all_values = {name: values for name, _, values in head}
    for name, counts, values in head:
        units = units_of_rows(name, result.analysis, all_values)
        cells = list(map(cell_text, values, units))
        cells = mark_lower_bounds(name, cells, result.analysis, all_values)
        written.append(TextColumn(cell_text(name), cells, counts))
    return written


def head_of(table: pa.Table, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
    """Return (name, whether numeric, first values) per column; ``max_rows`` 0: all values."""
    shown = table.slice(0, max_rows) if max_rows else table
    return [
        (field.name, is_number(field.type), column.to_pylist())
        for field, column in zip(shown.schema, shown.columns, strict=True)
    ]


def _lines(columns: list[tuple[TextColumn, int]]) -> Iterator[str]:
    """Yield the header lines, a rule, and a line for each row."""
    headers = [column.header(width) for column, width in columns]
    height = max(map(len, headers), default=0)
    # Shorter names are padded at the top, so that all of them end directly above the rule.
    padded = [[""] * (height - len(lines)) + lines for lines in headers]
    rule = ["─" * width for _, width in columns]
    cells = [cut_column(column.cells, width) for column, width in columns]
    for texts in (*zip(*padded, strict=True), rule, *zip(*cells, strict=True)):
        yield GAP.join(map(_aligned, texts, columns))


def _aligned(text: str, place: tuple[TextColumn, int]) -> str:
    column, width = place
    blank = " " * (width - text_width(text))
    return blank + text if column.is_number else text + blank


_LAST = "include_last_profiler_step"
_LAST_STEP = f"The last profiler step is excluded by default ({_LAST})."


def _reason_for_none(result: Shown) -> str:
    """Return why there are no rows.

    Parameters given by the caller come before data missing from the trace: they are the likelier
    cause.
    """
    analysis = result.analysis
    needs = analysis.facts.get("Needs") if analysis else None
    given = " or ".join(result.given)
    parameters = {parameter.name for parameter in analysis.parameters} if analysis else set()
    return " ".join(
        [
            "No rows.",
            *([f"The selected {given} may exclude everything."] if given else []),
            *([_LAST_STEP] if "steps" in result.given and _LAST in parameters else []),
            *([f"{analysis.base_name} needs: {needs}."] if analysis and needs else []),
        ]
    )


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column is numeric."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
