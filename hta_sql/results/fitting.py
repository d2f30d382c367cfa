"""Chooses which columns of a table fit the terminal, and the width of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap

from hta_sql.results.cells import NULL
from hta_sql.text import cut_column, text_width

NARROW_TEXT = 28
"""Minimum width of a text column if enough columns fit [characters]."""

SHORT_TEXT = 16
"""Minimum width of a column of longer texts otherwise [characters]."""

ANSWERS = frozenset({"message", "next_analysis", "reason"})
"""Columns that explain the numbers: they are dropped last, and never cut."""

CODES = frozenset({"message_code", "reason_code", "about_code"})
"""Columns of codes for programs; the corresponding messages are in other columns."""

SENTENCES = ANSWERS | {"title", "remedy"}
"""Columns that are wrapped instead of cut."""

BESIDE_SENTENCES = 4
"""Number of other columns that take precedence over sentences that are not answers."""

NARROW_SENTENCE = 36
"""Minimum width of a column of sentences [characters]."""

SENTENCE_LINES = 2
"""Maximum height of a sentence in the table [lines]; longer ones are printed below it."""

NOTES = "notes"
"""Name of the column that refers to the notes of several columns."""

GAP = "  "

SHORTER_FOR = 7
"""Texts become shorter if fewer columns than this fit, not counting the run."""

WRAPPED_FOR = 6
"""Column names are wrapped if fewer columns than this fit with shorter texts, not counting the run."""


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

    def cell_width(self, least_text: int) -> int:
        """Return the minimum useful width of the cells [characters].

        Numbers and texts of up to ``NARROW_TEXT`` characters, such as timestamps, are never cut.
        """
        cells = max(map(text_width, self.cells), default=0)
        if self.is_number or cells <= NARROW_TEXT:
            return cells
        return min(cells, NARROW_SENTENCE) if self.is_sentence else least_text

    @cached_property
    def name_width(self) -> int:
        """Minimum width of the name in two lines, wrapped at an underscore [characters]."""
        words = _words(self.name)
        halves = [("".join(words[:at]), "".join(words[at:])) for at in range(len(words))]
        return min(max(map(text_width, half)) for half in halves)

    @property
    def is_sentence(self) -> bool:
        """Whether the column contains sentences."""
        return is_sentence(self.name) and not self.is_number

    @property
    def is_note(self) -> bool:
        """Whether the cells refer to notes below the table, or may become such."""
        return self.name == NOTES or (self.is_sentence and self.name != "next_analysis")

    @property
    def is_unknown(self) -> bool:
        """Whether there are several rows and the value is unknown or empty in all of them."""
        return len(self.cells) > 1 and set(self.cells) <= {NULL, ""}

    def lines(self, width: int) -> list[list[str]]:
        """Return the lines of each cell: sentences wrap at the width, other strings are cut."""
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


def answering(columns: list[TextColumn], shown: Sequence[str], width: int) -> list[TextColumn]:
    """If the table is too wide, return the columns that answer the question, in reading order.

    Args:
        columns: All columns.
        shown: Names from the header line ``Shown:`` of the analysis; empty: all columns.
        width: Line width [characters].
    """
    by_name = {column.name: column for column in columns}
    names = [name for name in shown if name in by_name]
    if not names or line_width([column.width for column in columns]) <= width:
        return columns
    if "run" not in names and len(set(by_name["run"].cells if "run" in by_name else ())) > 1:
        names.insert(0, "run")
    return [by_name[name] for name in names]


def footnotes(columns: list[TextColumn], width: int) -> tuple[list[TextColumn], list[str]]:
    """Replace sentences that would wrap over many lines with references to notes below the table.

    Returns:
        The columns of the table, and the notes: ``[1]`` is the first.
    """
    sentences = [c for c in columns if c.is_note and c.width > NARROW_TEXT]
    if not sentences:
        return columns, []
    others = [c.width for c in columns if c not in sentences]
    room = (width - line_width([*others, 0])) // len(sentences)
    longest = max((text_width(cell) for c in sentences for cell in c.cells), default=0)
    if longest <= room or (room >= NARROW_SENTENCE and longest <= SENTENCE_LINES * room):
        return columns, []
    by_row = [
        [text for text in row if text != NULL]
        for row in zip(*(c.cells for c in sentences), strict=True)
    ]
    notes = list(dict.fromkeys(text for row in by_row for text in row))
    numbers = {text: f"[{number}]" for number, text in enumerate(notes, 1)}
    cells = [" ".join(numbers[text] for text in row) or NULL for row in by_row]
    name = sentences[0].name if len(sentences) == 1 else NOTES
    references = TextColumn(name, cells, is_number=False)
    replaced = [references if c is sentences[0] else c for c in columns]
    return [c for c in replaced if c not in sentences], notes


def part_constant(
    columns: list[TextColumn], width: int
) -> tuple[list[TextColumn], list[TextColumn]]:
    """If the table is too wide, separate columns whose text is the same, or unknown, in all rows.

    Returns:
        The columns of the table, and the columns to print once below the table.
    """
    same = [
        c
        for c in columns
        if c.is_unknown or (not c.is_number and len(c.cells) > 1 and len(set(c.cells)) == 1)
    ]
    has_room = line_width([column.width for column in columns]) <= width
    if has_room or len(same) == len(columns):
        return columns, []
    return [c for c in columns if c not in same], same


def fit(
    columns: list[TextColumn], width: int, *, by_position: bool = False
) -> tuple[list[TextColumn], list[int]]:
    """Return the columns that fit a width, and their widths.

    Long texts are shortened first. Then the least important columns are dropped. If few columns
    remain, texts become shorter and, if that does not suffice, names are wrapped.

    Args:
        columns: The columns of the table.
        width: Line width [characters].
        by_position: Whether columns are in order of importance already.
    """
    choose = _first_ones if by_position else _most_telling
    chosen = choose(columns, width, _roomy)
    runs = int("run" in {column.name for column in columns})
    if len(chosen) < min(len(columns), SHORTER_FOR + runs):
        chosen = choose(columns, width, _short)
    if len(chosen) < min(len(columns), WRAPPED_FOR + runs):
        chosen = choose(columns, width, _wrapped)
    return chosen, _widths(chosen, width)


def _roomy(column: TextColumn) -> int:
    """Return the minimum width with the name in one line."""
    return max(column.cell_width(NARROW_TEXT), text_width(column.name))


def _short(column: TextColumn) -> int:
    """Return the minimum width with shorter texts and the name in one line."""
    return max(column.cell_width(SHORT_TEXT), text_width(column.name))


def _wrapped(column: TextColumn) -> int:
    """Return the minimum width with shorter texts and the name in two lines."""
    return max(column.cell_width(SHORT_TEXT), column.name_width)


def _widths(columns: list[TextColumn], width: int) -> list[int]:
    """Return the width of each column: the fewest names are wrapped, and the longest texts cut."""
    least = [_short(c) for c in columns]
    while line_width(least) > width:
        saved = [have - _wrapped(c) for have, c in zip(least, columns, strict=True)]
        if not any(saved):
            break
        most = saved.index(max(saved))
        least[most] -= saved[most]
    cells = [max(map(text_width, c.cells), default=0) for c in columns]
    widths = list(map(max, cells, least))
    while line_width(widths) > width:
        spare = [have - floor for have, floor in zip(widths, least, strict=True)]
        if not any(spare):
            break
        widest = max((w, i) for i, w in enumerate(widths) if spare[i])[1]
        widths[widest] -= 1
    return widths


def _first_ones(
    columns: list[TextColumn], room: int, least: Callable[[TextColumn], int]
) -> list[TextColumn]:
    """Return the leading columns that fit, and all columns that refer to notes below the table."""
    chosen = list(columns)
    dropped = [c for c in columns[1:] if not c.is_note or c.width > NARROW_TEXT]
    while dropped and line_width([least(c) for c in chosen]) > room:
        chosen.remove(dropped.pop())
    return chosen


def _most_telling(
    columns: list[TextColumn], room: int, least: Callable[[TextColumn], int]
) -> list[TextColumn]:
    """Return the columns that fit, chosen by importance.

    If there are columns of answers, text columns that do not fit are skipped in favor of numbers,
    because costs matter more.
    """
    first, *others = telling_first(columns)
    has_answers = any(column.name in ANSWERS for column in others)
    chosen = [first]
    for column in others:
        if line_width([least(c) for c in (*chosen, column)]) <= room:
            chosen.append(column)
        elif not column.is_sentence and (column.is_number or not has_answers):
            break
    return [column for column in columns if column in chosen]


def telling_first(columns: list[TextColumn]) -> list[TextColumn]:
    """Sort columns: the first column and answers, a few others, sentences, then the rest.

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


def _words(name: str) -> list[str]:
    """Split a name after its underscores."""
    parts = name.split("_")
    return [part + "_" for part in parts[:-1]] + parts[-1:]


def line_width(widths: list[int]) -> int:
    """Return the width of a line with columns of these widths [characters]."""
    return sum(widths) + len(GAP) * (len(widths) - 1)
