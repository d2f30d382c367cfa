"""Prints a result as an aligned table in human units that fits the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Protocol

from hta_sql.results.cells import NULL, cell_text, column_unit
from hta_sql.results.lower_bounds import mark_lower_bounds
from hta_sql.text import CUT, cut_column, cut_middle, text_width

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.library.objects import SqlObject

PLAIN_WIDTH = 200
"""Width if the output is not a terminal and COLUMNS is not set [characters]."""

NARROW_TEXT = 28
"""Minimum width of a text column [characters]; below it, columns are dropped instead."""

ANSWERS = frozenset({"message", "next_analysis", "reason"})
"""Columns that explain the numbers: they are dropped last, and never cut."""

CODES = frozenset({"message_code", "reason_code", "about_code"})
"""Columns for programs: the corresponding message is next to them."""

SENTENCES = ANSWERS | {"title", "remedy"}
"""Columns that are wrapped instead of cut."""

BESIDE_SENTENCES = 4
"""Number of other columns that take precedence over sentences that are not answers."""

NARROW_SENTENCE = 36
"""Minimum width of a column of sentences [characters]."""

NAMED_COLUMNS = 12
"""Maximum number of dropped columns to name below the table."""

_GAP = "  "
_DROPPED = len(_GAP) + len(CUT)


class Shown(Protocol):
    """Rows that can be printed as a table."""

    @property
    def analysis(self) -> SqlObject | None:
        """The analysis of the rows, which defines their units."""

    @property
    def given(self) -> Sequence[str]:
        """Parameters given by the caller, each of which may be the reason for an empty result."""

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return name, whether it is numeric, and first values of each column; 0: all values."""

    def __len__(self) -> int: ...


class Rows(Shown, Protocol):
    """Rows that can be printed and written: a :class:`hta_sql.results.result.Result` or a part."""

    def arrow(self) -> pa.Table:
        """Return the rows."""


@dataclass(frozen=True)
class TableRows:
    """Rows that are not a whole result of the engine."""

    table: pa.Table
    analysis: SqlObject | None = None
    given: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """Return the rows."""
        return self.table

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return name, whether it is numeric, and first values of each column; 0: all values."""
        return head_of(self.table, max_rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column as text: its name, its cells, and whether they are numbers."""

    name: str
    cells: list[str]
    is_number: bool

    @cached_property
    def width(self) -> int:
        """Width of its widest cell or its name [characters]."""
        return max(map(text_width, (self.name, *self.cells)))

    @cached_property
    def least_width(self) -> int:
        """Minimum useful width: numbers are never cut, names wrap at underscores."""
        cells = max(map(text_width, self.cells), default=0)
        words = max(map(text_width, _words(self.name)))
        least = NARROW_SENTENCE if self.is_sentence else NARROW_TEXT
        return max(words, cells if self.is_number else min(cells, least))

    @property
    def is_sentence(self) -> bool:
        """Whether it is a column of sentences."""
        return self.name in SENTENCES and not self.is_number

    @property
    def is_unknown(self) -> bool:
        """Whether the value is unknown in each of several rows."""
        return len(self.cells) > 1 and set(self.cells) == {NULL}

    def lines(self, width: int) -> list[list[str]]:
        """Return the lines of each cell for a width: sentences are wrapped, other texts are cut."""
        if self.is_sentence:
            return [wrap(cell, width) or [""] for cell in self.cells]
        return [[text] for text in cut_column(self.cells, width)]

    def header(self, width: int) -> list[str]:
        """Wrap the name into lines of at most this width."""
        lines = [""]
        for word in _words(self.name):
            if text_width(lines[-1] + word) > width and lines[-1]:
                lines.append("")
            lines[-1] += word
        return lines


def print_table(
    result: Shown,
    max_rows: int = 40,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    remedy: str = "",
) -> None:
    """Print the first rows of a result as a table.

    Times, sizes and percentages are printed in human units, long texts are cut in the middle, and
    control characters are escaped: for exact values use ``.df()``, ``.rows()`` or a file format. A
    note below the table names the rows and columns that are not shown.

    Args:
        result: Rows to print.
        max_rows: Maximum number of rows; 0 prints all.
        file: Output stream; default: stdout.
        width: Line width [characters]; default: ``COLUMNS``, else the terminal's, else 200.
        remedy: How the user gets the rest; printed if something is cut.
    """
    file = file or sys.stdout
    room = width or shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    columns = text_columns(result, max_rows)
    varying, same = part_constant(columns, room)
    kept, widths = fit(varying, room)
    for line in _lines(kept, widths, cut=len(kept) < len(varying)):
        file.write(line.rstrip() + "\n")
    shown = len(columns[0].cells) if columns else 0
    if same:
        known = [c for c in same if not c.is_unknown]
        notes = [f"{c.name}: {cut_middle(c.cells[0], PLAIN_WIDTH)}" for c in known]
        empty = ", ".join(c.name for c in same if c.is_unknown)
        notes += [f"{NULL}: {empty}"] if empty else []
        file.write(f"\n(in each of these rows: {'; '.join(notes)})\n")
    hidden = [column.name for column in varying if column not in kept]
    for line in _footer(result, shown, hidden, remedy):
        file.write(line + "\n")


def text_columns(result: Shown, max_rows: int = 0) -> list[TextColumn]:
    """Format the first rows of a result, column by column; 0 formats all of them."""
    written = []
    head = result.head(max_rows)
    all_values = {name: values for name, _, values in head}
    for name, counts, values in head:
        unit = column_unit(name, result.analysis)
        cells = [cell_text(value, unit) for value in values]
        cells = mark_lower_bounds(name, cells, result.analysis, all_values)
        written.append(TextColumn(cell_text(name), cells, counts))
    return written


def head_of(table: pa.Table, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
    """Return name, whether it is numeric, and first values of each column; 0: all values."""
    shown = table.slice(0, max_rows) if max_rows else table
    return [
        (field.name, is_number(field.type), column.to_pylist())
        for field, column in zip(shown.schema, shown.columns, strict=True)
    ]


def part_constant(
    columns: list[TextColumn], width: int
) -> tuple[list[TextColumn], list[TextColumn]]:
    """If the table is too wide, separate the columns with the same text, or nothing, in each row.

    Returns:
        The columns of the table, and those to print once below it.
    """
    same = [
        c
        for c in columns
        if c.is_unknown or (not c.is_number and len(c.cells) > 1 and len(set(c.cells)) == 1)
    ]
    has_room = _line_width([column.width for column in columns]) <= width
    if has_room or len(same) == len(columns):
        return columns, []
    return [c for c in columns if c not in same], same


def fit(columns: list[TextColumn], width: int) -> tuple[list[TextColumn], list[int]]:
    """Return the columns that fit a width, and their widths; drops the least important columns."""
    kept, room = columns, width
    if _line_width([c.least_width for c in columns]) > width:
        room = width - _DROPPED
        kept = _most_telling(columns, room)
    widths = [column.width for column in kept]
    while _line_width(widths) > room:
        spare = [have - c.least_width for have, c in zip(widths, kept, strict=True)]
        if not any(spare):
            break
        widest = max((w, i) for i, w in enumerate(widths) if spare[i])[1]
        widths[widest] -= 1
    return kept, widths


def _most_telling(columns: list[TextColumn], room: int) -> list[TextColumn]:
    """Return the columns that fit, chosen by importance.

    If there are answers, text columns that do not fit are skipped in favor of numbers: costs matter
    more.
    """
    first, *others = telling_first(columns)
    has_answers = any(column.name in ANSWERS for column in others)
    kept = [first]
    for column in others:
        if _line_width([c.least_width for c in (*kept, column)]) <= room:
            kept.append(column)
        elif not column.is_sentence and (column.is_number or not has_answers):
            break
    return [column for column in columns if column in kept]


def telling_first(columns: list[TextColumn]) -> list[TextColumn]:
    """Sort columns by importance: the first and answers, a few others, sentences, then the rest.

    A full name comes last if its short name is present. Message codes always come last, because
    their message says more.
    """
    if codes := [c for c in columns[1:] if c.name in CODES]:
        return [*telling_first([c for c in columns if c not in codes]), *codes]
    if "short_name" in (names := [c.name for c in columns]) and "name" in names[1:]:
        whole = columns[names.index("name", 1)]
        return [*telling_first([c for c in columns if c is not whole]), whole]
    others = [c for c in columns[1:] if not c.is_sentence]
    answers = [c for c in columns[1:] if c.name in ANSWERS]
    sentences = [c for c in columns[1:] if c.is_sentence and c.name not in ANSWERS]
    few, rest = others[:BESIDE_SENTENCES], others[BESIDE_SENTENCES:]
    return [*columns[:1], *answers, *few, *sentences, *rest]


def _lines(columns: list[TextColumn], widths: list[int], *, cut: bool) -> Iterator[str]:
    """Yield the header lines, a rule, and the lines of each row."""
    more = [CUT] if cut else []
    headers = [column.header(width) for column, width in zip(columns, widths, strict=True)]
    height = max(map(len, headers), default=0)
    # Names are aligned to the rule, above their numbers.
    padded = [[""] * (height - len(lines)) + lines for lines in headers]
    for names in zip(*padded, strict=True):
        yield _GAP.join([*map(_aligned, names, columns, widths), *more])
    if columns:
        yield _GAP.join(["─" * width for width in widths] + ["─" for _ in more])
    cells = [column.lines(width) for column, width in zip(columns, widths, strict=True)]
    for row in zip(*cells, strict=True):
        for number, texts in enumerate(zip_longest(*row, fillvalue="")):
            end = more if number == 0 else []
            yield _GAP.join([*map(_aligned, texts, columns, widths), *end])


def _aligned(text: str, column: TextColumn, width: int) -> str:
    blank = " " * (width - text_width(text))
    return blank + text if column.is_number else text + blank


def _footer(result: Shown, shown: int, hidden: list[str], remedy: str) -> list[str]:
    """Return the lines that name what the table does not show, or why it is empty."""
    if not len(result):
        return [_reason_for_none(result)]
    cut = []
    if shown < len(result):
        cut.append(f"{shown:,} of {len(result):,} rows")
    if hidden:
        names = ", ".join(hidden[:NAMED_COLUMNS]) + (", ..." if len(hidden) > NAMED_COLUMNS else "")
        cut.append(f"no room for {names}")
    return ["", f"({'; '.join([*cut, *([remedy] if remedy else [])])})"] if cut else []


def _reason_for_none(result: Shown) -> str:
    """Return why there are no rows.

    The given parameters come before what a trace may lack, because they are the more likely cause.
    """
    analysis = result.analysis
    needs = analysis.facts.get("Needs") if analysis else None
    given = " or ".join(result.given)
    return " ".join(
        [
            "No rows.",
            *([f"What was given as {given} may have left nothing."] if given else []),
            *([f"{analysis.base_name} needs: {needs}."] if analysis and needs else []),
        ]
    )


def _words(name: str) -> list[str]:
    """Split a name after its underscores."""
    parts = name.split("_")
    return [part + "_" for part in parts[:-1]] + parts[-1:]


def _line_width(widths: list[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column is numeric."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
