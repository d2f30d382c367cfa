"""Prints a result as an aligned table in human units that fits the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Protocol

from hta_sql.results.cells import cell_text, units_of_rows
from hta_sql.results.fitting import (
    GAP,
    NARROW_SENTENCE,
    TextColumn,
    answering,
    fit,
    footnotes,
    part_constant,
)
from hta_sql.results.footer import Omitted, footer
from hta_sql.results.lower_bounds import mark_lower_bounds
from hta_sql.text import PLAIN_WIDTH, TABLE_ROWS, text_width

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
    """
    file = file or sys.stdout
    room = width or shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    columns = text_columns(result, max_rows)
    chosen = answering(columns, _shown(result.analysis, columns), room)
    varying, same = part_constant(chosen, room)
    in_table, notes = footnotes(varying, room)
    fitting, widths = fit(in_table, room, by_position=chosen is not columns)
    for line in _lines(fitting, widths):
        file.write(line.rstrip() + "\n")
    for line in _wrapped_notes(notes, room):
        file.write(line + "\n")
    if not len(result):
        file.write(_reason_for_none(result) + "\n")
        return
    noted = [column for column in varying if column not in in_table]
    hidden = _hidden(columns, chosen, [*fitting, *same, *noted])
    omitted = Omitted(same, hidden, len(columns[0].cells), len(result))
    for line in footer(omitted, room, rows_remedy, columns_remedy):
        file.write(line + "\n")


def _shown(analysis: SqlObject | None, columns: list[TextColumn]) -> list[str]:
    """Return the analysis's ``Shown:`` columns, or none if the caller chose the columns."""
    is_whole = analysis is not None and len(columns) == len(analysis.columns)
    return analysis.shown if analysis and is_whole else []


def _wrapped_notes(notes: list[str], width: int) -> Iterator[str]:
    if notes:
        yield ""
    for number, text in enumerate(notes, 1):
        mark = f"[{number}] "
        lines = wrap(text, max(width - len(mark), NARROW_SENTENCE)) or [""]
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


def _lines(columns: list[TextColumn], widths: list[int]) -> Iterator[str]:
    """Yield the header lines, a rule, and the lines of each row."""
    headers = [column.header(width) for column, width in zip(columns, widths, strict=True)]
    height = max(map(len, headers), default=0)
    # Shorter names are padded at the top, so that all of them end directly above the rule.
    padded = [[""] * (height - len(lines)) + lines for lines in headers]
    for names in zip(*padded, strict=True):
        yield GAP.join(map(_aligned, names, columns, widths))
    if columns:
        yield GAP.join("─" * width for width in widths)
    cells = [column.lines(width) for column, width in zip(columns, widths, strict=True)]
    for row in zip(*cells, strict=True):
        for texts in zip_longest(*row, fillvalue=""):
            yield GAP.join(map(_aligned, texts, columns, widths))


def _aligned(text: str, column: TextColumn, width: int) -> str:
    blank = " " * (width - text_width(text))
    return blank + text if column.is_number else text + blank


def _hidden(
    columns: list[TextColumn], chosen: list[TextColumn], printed: list[TextColumn]
) -> list[str]:
    """Return the names of columns that are not printed, those that were chosen first."""
    written = {column.name for column in printed}
    names = dict.fromkeys(column.name for column in (*chosen, *columns))
    return [name for name in names if name not in written]


def _reason_for_none(result: Shown) -> str:
    """Return why there are no rows.

    Parameters given by the caller come before data missing from the trace: they are the likelier
    cause.
    """
    analysis = result.analysis
    needs = analysis.facts.get("Needs") if analysis else None
    given = " or ".join(result.given)
    return " ".join(
        [
            "No rows.",
            *([f"The selected {given} may exclude everything."] if given else []),
            *([f"{analysis.base_name} needs: {needs}."] if analysis and needs else []),
        ]
    )


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column is numeric."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
