"""Renders a result as a sortable HTML table, limited to a number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from markupsafe import Markup

from hta_sql.library.objects import SqlObject
from hta_sql.report.column_order import ANSWERS, CODES, places
from hta_sql.report.headings import column_texts, headings
from hta_sql.report.rendering import render
from hta_sql.report.row_selection import kept_text, largest, order_of
from hta_sql.results.display import Rows, is_number
from hta_sql.results.fitting import SENTENCES
from hta_sql.results.lower_bounds import BOUNDED, mark_lower_bounds
from hta_sql.text import cut_middle, printable

CELL_CHARACTERS = 6_000
"""Maximum length of a text [characters]; real kernel names of up to 5,200 are complete."""
LONG = 36
"""Length of a text above which it may take several lines."""
WORD = 18
"""Length of a text above which it may be wrapped on a narrow page."""
FEW = 3
MANY = 9
"""Minimum number of columns for which up to ``FEW`` rows are shown transposed.

In wider tables with more rows, columns with equal values are dropped.
"""
_KEYS = ("run", "rank", "step")
FOLDED = 84
"""Number of characters of a long text that are visible before it is expanded."""


class Heading(NamedTuple):
    """A heading: the column's name, its label, its tooltip, its position on a narrow page."""

    name: str
    words: str
    about: str
    place: int = 0
    is_number: bool = False


class Cell(NamedTuple):
    """A cell: text, CSS class, exact value to sort by, and hidden part and end of a long text."""

    text: str
    kind: str = ""
    sort: str | None = None
    folded: str = ""
    end: str = ""


def table_markup(result: Rows, rows: int) -> Markup:
    """Render a table: sortable headings, and cells in human units with exact values for sorting.

    Args:
        result: The rows.
        rows: Maximum number of rows; a note below the table counts the omitted ones.
    """
    total = len(result)
    analysis = result.analysis
    table = _without_codes(_without_single_run(result.arrow()))
    order = order_of(analysis, table)
    table, column = largest(table, rows, order)
    named = headings(table, analysis)
    docs = {c.name: c.doc for c in analysis.columns} if analysis else {}
    label = f"Rows of {analysis.base_name}" if analysis else "Rows"
    if total <= FEW and table.num_columns >= MANY:
        return _upright(table, analysis, docs, named, label)
    covered = table.to_pydict() if analysis and analysis.base_name in BOUNDED else {}
    table, same = _without_equal(table, analysis, named)
    head, columns = [], []
    place = places(table, analysis)
    for field, values in zip(table.schema, table.columns, strict=True):
        exact = values.to_pylist()
        words, texts = column_texts(field.name, exact, analysis, named[field.name])
        texts = mark_lower_bounds(field.name, texts, analysis, covered)
        is_a_number = is_number(field.type)
        about = f"{field.name}: {docs.get(field.name, '')}"
        head.append(Heading(field.name, words, about, place[field.name], is_a_number))
        cell = _number if is_a_number else _sentence if field.name in SENTENCES else _text
        columns.append([cell(text, value) for text, value in zip(texts, exact, strict=True)])
    kept = kept_text(table.num_rows, total, column, order, named)
    body = zip(*columns, strict=True)
    return render("table", label=label, head=head, body=body, notes=[*kept, *same])


def _upright(
    table: pa.Table,
    analysis: SqlObject | None,
    docs: Mapping[str, str],
    named: Mapping[str, str],
    label: str,
) -> Markup:
    """Render few rows with many columns as a transposed table that fits the page."""
    lines = []
    unknown = []
    covered = table.to_pydict() if analysis and analysis.base_name in BOUNDED else {}
    # A message is the answer, and the other columns are its details.
    names = sorted(table.column_names, key=lambda name: name not in ANSWERS)
    table = table.select(names)
    for field, values in zip(table.schema, table.columns, strict=True):
        exact = values.to_pylist()
        words, texts = column_texts(field.name, exact, analysis, named[field.name])
        if table.num_rows and values.null_count == table.num_rows:
            unknown.append(words)
            continue
        texts = mark_lower_bounds(field.name, texts, analysis, covered)
        cell = _number if is_number(field.type) else _plain
        cells = [cell(text, value) for text, value in zip(texts, exact, strict=True)]
        about = f"{field.name}: {docs.get(field.name, '')}"
        lines.append((Heading(field.name, words, about), cells))
    has_lines = any(cell.kind == "lines" for _, cells in lines for cell in cells)
    notes = _unknown_text(unknown)
    return render("upright", label=label, lines=lines, notes=notes, has_lines=has_lines)


def _without_equal(
    table: pa.Table, analysis: SqlObject | None, named: Mapping[str, str]
) -> tuple[pa.Table, list[str]]:
    """Drop constant numbers and unknown columns from a wide table.

    Returns:
        The remaining table, and a note on the dropped columns, if any.
    """
    if table.num_rows < 2 or table.num_columns < MANY:
        return table, []
    said, unknown, names = [], [], table.column_names
    first = table.slice(0, 1).to_pydict()
    for name in names:
        values = table.column(name)
        is_kept = name in _KEYS or not is_number(values.type)
        if len(values.unique()) > 1 or (values[0].is_valid and is_kept):
            continue
        words, texts = column_texts(name, values.slice(0, 1).to_pylist(), analysis, named[name])
        texts = mark_lower_bounds(name, texts, analysis, first)
        table = table.drop_columns([name])
        if not values[0].is_valid:
            unknown.append(words)
        elif not (name.removesuffix("_count") in set(names) - {name} and texts == ["1"]):
            # A row about a step need not state that it counts one step.
            said.append(f"{words}: {cut_middle(texts[0], FOLDED)}")
    lines = [f"The same in all of these rows: {'; '.join(said)}."] if said else []
    lines += _unknown_text(unknown)
    return table, [" ".join(lines)] if lines else []


def _unknown_text(words: Sequence[str]) -> list[str]:
    """Return the note on columns without any value."""
    return [f"No values (not recorded or not requested): {', '.join(words)}."] if words else []


def _without_single_run(table: pa.Table) -> pa.Table:
    """Drop the column ``run`` if there is only one run, because the title names it."""
    if "run" not in table.column_names or table.num_columns == 1:
        return table
    runs = table.column("run").unique()
    return table.drop_columns(["run"]) if len(runs) == 1 else table


def _without_codes(table: pa.Table) -> pa.Table:
    """Drop codes and numbers for programs, if their messages and texts are in the table."""
    names = set(table.column_names)
    codes = [code for code in CODES & names if code.removesuffix("_code") in names]
    # A point in time is also in the table as text.
    times = [f"{name}_ns" for name in _texts(table) if f"{name}_ns" in names]
    return table.drop_columns([*codes, *times])


def _texts(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_string(field.type)]


def _number(text: str, value: Any) -> Cell:
    exact = "" if value is None else str(value)
    return Cell(text, "number", None if exact == text else exact)


def _plain(text: str, value: Any) -> Cell:
    whole = _whole(text, value)
    return Cell(whole, "lines" if len(whole) > WORD else "")


def _sentence(text: str, value: Any) -> Cell:
    return Cell(_whole(text, value), "long")


def _whole(text: str, value: Any) -> str:
    """Return the text of a cell, with the line breaks of its value."""
    if isinstance(value, str) and "\n" in value:
        text = "\n".join(map(printable, value.split("\n")))
    return cut_middle(text, CELL_CHARACTERS)


def _text(text: str, value: Any) -> Cell:
    """Return the cell of a string; if its middle is hidden, it can still be copied and found."""
    whole = _whole(text, value)
    if len(whole) <= FOLDED:
        return Cell(whole, "long" if len(whole) > LONG else "name" if len(whole) > WORD else "")
    # Kernels differ at the start, before their arguments; frames differ at the end.
    tail = FOLDED // 3 if "<" in whole else 2 * FOLDED // 3
    parts = (whole[: FOLDED - tail], whole[FOLDED - tail : -tail], whole[-tail:])
    return Cell(parts[0], "long", None, parts[1], parts[2])
