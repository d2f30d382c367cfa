"""Lays out a table in the width of a terminal: its columns, their widths, and notes below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hta_sql.results.cells import NULL
from hta_sql.text import text_width

SHORT_TEXT = 28
"""Texts of up to this many characters, such as timestamps, are never cut."""

CUT_TEXT = 20
"""Minimum width of a column of longer texts [characters]."""

SENTENCES = frozenset({"message", "next_analysis", "reason", "title", "remedy"})
"""Columns of sentences, which are never cut: they are printed below a table that is too wide."""

MOST_NOTES = 8
"""Number of notes up to which a table may have more notes than rows."""

NOTES = "notes"
"""Name of the column that refers to the notes of several columns."""

GAP = "  "


def is_sentence(name: str) -> bool:
    """Return whether a text column of this name contains sentences."""
    return name in SENTENCES or name == "meaning" or name.endswith("_reason")


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column as text: its name, its cells, and whether they are numbers."""

    name: str
    cells: list[str]
    is_number: bool

    @cached_property
    def width(self) -> int:
        """Width of the widest cell, or of the column name if that is wider [characters]."""
        return max(map(text_width, (self.name, *self.cells)))

    @cached_property
    def least_width(self) -> int:
        """Width with the name in two lines and long texts cut; numbers are never cut."""
        cells = max(map(text_width, self.cells), default=0)
        words = _words(self.name)
        halves = [("".join(words[:at]), "".join(words[at:])) for at in range(len(words))]
        name = min(max(map(text_width, half)) for half in halves)
        return max(name, cells if self.is_number or cells <= SHORT_TEXT else CUT_TEXT)

    @property
    def is_unknown(self) -> bool:
        """Whether there are several rows and the value is unknown or empty in all of them."""
        return len(self.cells) > 1 and set(self.cells) <= {NULL, ""}

    def header(self, width: int) -> list[str]:
        """Wrap the name at underscores into lines of at most this width."""
        lines = [""]
        for word in _words(self.name):
            if text_width(lines[-1] + word) > width and lines[-1]:
                lines.append("")
            lines[-1] += word
        return lines


@dataclass(frozen=True)
class Layout:
    """What a table shows.

    Attributes:
        columns: The columns of the table, each with its width.
        same: Columns whose text is the same, or unknown, in all rows: printed once.
        notes: Sentences below the table; a cell ``[1]`` refers to the first.
        hidden: Names of the other columns, those of the analysis's ``Shown:`` first.
    """

    columns: list[tuple[TextColumn, int]]
    same: list[TextColumn]
    notes: list[str]
    hidden: list[str]


def lay_out(columns: list[TextColumn], shown: Sequence[str], width: int) -> Layout:
    """Return the layout of a table.

    If all columns fit, they are shown in their order. Otherwise, the columns that the analysis
    selects are shown in its order: those without a value below the table. If the others do not fit,
    constant ones and sentences move there too, and as many of the others as fit are shown.

    Args:
        columns: All columns.
        shown: Names from the header line ``Shown:`` of the analysis; empty: all columns.
        width: Line width [characters].
    """
    if _fits([c.width for c in columns], width):
        return Layout([(c, c.width) for c in columns], [], [], [])
    chosen = _selected(columns, shown)
    fits = _fits([c.width for c in chosen], width)
    same = _constant(chosen, texts=not fits)
    table = [c for c in chosen if c not in same]
    notes: list[str] = []
    references: TextColumn | None = None
    noted: set[str] = set()
    if not _fits([c.width for c in table], width):
        table, references, noted, notes = _noted(table)
    dropped = [c for c in table[1:] if c is not references]
    while dropped and not _fits([c.least_width for c in table], width):
        table.remove(dropped.pop())
    printed = {c.name for c in (*table, *same)} | noted
    names = dict.fromkeys(c.name for c in (*chosen, *columns))
    return Layout(
        list(zip(table, _widths(table, width), strict=True)),
        same,
        notes,
        [name for name in names if name not in printed],
    )


def _selected(columns: list[TextColumn], shown: Sequence[str]) -> list[TextColumn]:
    by_name = {column.name: column for column in columns}
    names = [name for name in shown if name in by_name] or list(by_name)
    if "run" not in names and len(set(by_name["run"].cells if "run" in by_name else ())) > 1:
        names.insert(0, "run")
    return [by_name[name] for name in names]


def _constant(columns: list[TextColumn], *, texts: bool) -> list[TextColumn]:
    """Return the columns without a value, and with ``texts`` those with one text in several rows."""
    same = [
        c
        for c in columns
        if c.is_unknown
        or (texts and not c.is_number and len(c.cells) > 1 and len(set(c.cells)) == 1)
    ]
    return [] if len(same) == len(columns) else same


def _noted(
    columns: list[TextColumn],
) -> tuple[list[TextColumn], TextColumn | None, set[str], list[str]]:
    """Replace columns of sentences with one that refers to notes below the table.

    A reader would get lost in more notes than rows: then the column with the most texts is omitted.
    """
    sentences = [c for c in columns if _is_note(c)]
    if not sentences:
        return columns, None, set(), []
    row_count = len(sentences[0].cells)
    while len(sentences) > 1 and len(_texts(sentences)) > max(row_count, MOST_NOTES):
        longest = max(sentences, key=lambda c: len(set(c.cells)))
        sentences.remove(longest)
        columns = [c for c in columns if c is not longest]
    by_row = [
        [text for text in row if text != NULL]
        for row in zip(*(c.cells for c in sentences), strict=True)
    ]
    notes = _texts(sentences)
    numbers = {text: f"[{number}]" for number, text in enumerate(notes, 1)}
    cells = [" ".join(numbers[text] for text in row) or NULL for row in by_row]
    name = sentences[0].name if len(sentences) == 1 else NOTES
    references = TextColumn(name, cells, is_number=False)
    replaced = [references if c is sentences[0] else c for c in columns]
    names = {c.name for c in sentences}
    return [c for c in replaced if c not in sentences], references, names, notes


def _texts(sentences: list[TextColumn]) -> list[str]:
    """Return the distinct texts of columns, row by row."""
    rows = zip(*(c.cells for c in sentences), strict=True)
    return list(dict.fromkeys(text for row in rows for text in row if text != NULL))


def _is_note(column: TextColumn) -> bool:
    return is_sentence(column.name) and not column.is_number and column.width > SHORT_TEXT


def _widths(columns: list[TextColumn], width: int) -> list[int]:
    """Return the width of each column: names in one line, then whole texts, the first ones first."""
    widths = [c.least_width for c in columns]
    for wanted in ([text_width(c.name) for c in columns], [c.width for c in columns]):
        for at, full in enumerate(wanted):
            left = width - _line_width(widths)
            widths[at] += max(0, min(left, full - widths[at]))
    return widths


def _words(name: str) -> list[str]:
    """Split a name after its underscores."""
    parts = name.split("_")
    return [part + "_" for part in parts[:-1]] + parts[-1:]


def _fits(widths: list[int], width: int) -> bool:
    return _line_width(widths) <= width


def _line_width(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
