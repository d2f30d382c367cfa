"""A result as an HTML table that sorts by a click, cut to so many rows, with a word about the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from markupsafe import Markup

from hta_sql.library.objects import SqlObject
from hta_sql.report.column_order import places
from hta_sql.report.headings import column_texts, headings
from hta_sql.report.rendering import render
from hta_sql.report.row_selection import kept_text, largest, order_of
from hta_sql.results.display import SENTENCES, Rows, is_number
from hta_sql.results.lower_bounds import BOUNDED, mark_lower_bounds
from hta_sql.text import cut_middle

CELL_CHARACTERS = 6_000
"""Names of real kernels have up to 5,200; they are whole on hover and when they are copied."""
LONG = 36
"""A longer text may take several lines."""
WORD = 18
"""A longer text may be broken where a page is narrow."""
FEW = 3
MANY = 9
"""Up to so many rows of at least so many columns stand upright; wider tables lose columns that are the same in all rows."""
_KEYS = ("run", "rank", "step")
FOLDED = 84
"""So many characters of a longer text are seen."""


class Heading(NamedTuple):
    """A heading of a table: the column, its words, what a pointer shows, its position on a narrow page."""

    name: str
    words: str
    about: str
    place: int = 0
    is_number: bool = False


class Cell(NamedTuple):
    """A cell: its text, its class, the exact value to sort by, and of a long text what is folded and its end."""

    text: str
    kind: str = ""
    sort: str | None = None
    folded: str = ""
    end: str = ""


def table_markup(result: Rows, rows: int) -> Markup:
    """Render a table: headings that sort, and cells in human units with the exact value behind them.

    Args:
        result: The rows.
        rows: Rows at most; if some are left out, a line below the table says so.
    """
    total = len(result)
    analysis = result.analysis
    table = _without_single_run(result.arrow())
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
    """Render few rows of many columns as columns: they fit the page."""
    lines = []
    covered = table.to_pydict() if analysis and analysis.base_name in BOUNDED else {}
    for field, values in zip(table.schema, table.columns, strict=True):
        exact = values.to_pylist()
        words, texts = column_texts(field.name, exact, analysis, named[field.name])
        texts = mark_lower_bounds(field.name, texts, analysis, covered)
        cell = _number if is_number(field.type) else _plain
        cells = [cell(text, value) for text, value in zip(texts, exact, strict=True)]
        about = f"{field.name}: {docs.get(field.name, '')}"
        lines.append((Heading(field.name, words, about), cells))
    return render("upright", label=label, lines=lines)


def _without_equal(
    table: pa.Table, analysis: SqlObject | None, named: Mapping[str, str]
) -> tuple[pa.Table, list[str]]:
    """Take numbers that are the same in all rows, and unknown columns, off a wide table.

    Returns:
        The table without them, and a note that says what is in them, if there are any.
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
            # That a row about a step is about one step needs no words.
            said.append(f"{words}: {cut_middle(texts[0], FOLDED)}")
    lines = [f"The same in these rows: {'; '.join(said)}."] if said else []
    lines += (
        [f"No values (not recorded or not asked for): {', '.join(unknown)}."] if unknown else []
    )
    return table, [" ".join(lines)] if lines else []


def _without_single_run(table: pa.Table) -> pa.Table:
    """Leave out the run where there is one alone: it stands in the title."""
    if "run" not in table.column_names or table.num_columns == 1:
        return table
    runs = table.column("run").unique()
    return table.drop_columns(["run"]) if len(runs) == 1 else table


def _number(text: str, value: Any) -> Cell:
    exact = "" if value is None else str(value)
    return Cell(text, "number", None if exact == text else exact)


def _plain(text: str, _: Any) -> Cell:
    return Cell(cut_middle(text, CELL_CHARACTERS))


def _sentence(text: str, _: Any) -> Cell:
    return Cell(cut_middle(text, CELL_CHARACTERS), "long")


def _text(text: str, _: Any) -> Cell:
    """Return a text; of a long one the middle is folded away, but copied and found with the rest."""
    whole = cut_middle(text, CELL_CHARACTERS)
    if len(whole) <= FOLDED:
        return Cell(whole, "long" if len(whole) > LONG else "name" if len(whole) > WORD else "")
    # What tells kernels apart stands in front of their arguments, and what tells frames at the end.
    tail = FOLDED // 3 if "<" in whole else 2 * FOLDED // 3
    parts = (whole[: FOLDED - tail], whole[FOLDED - tail : -tail], whole[-tail:])
    return Cell(parts[0], "long", None, parts[1], parts[2])
