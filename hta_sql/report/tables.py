"""A result as an HTML table that sorts by a click, cut to so many rows, with a word about the rest."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hta_sql.library.objects import SqlObject
from hta_sql.report.column_order import places
from hta_sql.report.headings import column_texts, headings
from hta_sql.report.row_selection import kept_markup, largest, order_of
from hta_sql.results.display import SENTENCES, Rows, is_number
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


def table_markup(result: Rows, rows: int) -> str:
    """Write a table: a heading that sorts, cells in human units with the exact value behind them.

    Args:
        result: What to write.
        rows: Rows at most; of more, some are left out, and a line says so.
    """
    total = len(result)
    table = _told_apart(result.arrow())
    order = order_of(result.analysis, table)
    table, column = largest(table, rows, order)
    named = headings(table, result.analysis)
    docs = {c.name: c.doc for c in result.analysis.columns} if result.analysis else {}
    label = f"Rows of {result.analysis.base_name}" if result.analysis else "Rows"
    if total <= FEW and table.num_columns >= MANY:
        return _upright(table, result.analysis, docs, named, label)
    table, said = _without_equal(table, result.analysis, named)
    head, columns = [], []
    place = places(table, result.analysis)
    for field, values in zip(table.schema, table.columns, strict=True):
        exact = values.to_pylist()
        words, texts = column_texts(field.name, exact, result.analysis, named[field.name])
        number = is_number(field.type)
        about = f"{field.name}: {docs.get(field.name, '')}"
        head.append(_heading(field.name, words, about, place[field.name], number=number))
        write = _number if number else _sentence if field.name in SENTENCES else _text
        columns.append([write(text, value) for text, value in zip(texts, exact, strict=True)])
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    markup = (
        f'<div class="table" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    markup += kept_markup(table.num_rows, total, column, order, named)
    return markup + said


def _upright(
    table: pa.Table,
    analysis: SqlObject | None,
    docs: Mapping[str, str],
    named: Mapping[str, str],
    label: str,
) -> str:
    """Write few rows of many columns as columns: they fit the page."""
    lines = []
    for field, values in zip(table.schema, table.columns, strict=True):
        exact = values.to_pylist()
        words, texts = column_texts(field.name, exact, analysis, named[field.name])
        write = _number if is_number(field.type) else _plain
        cells = "".join(write(text, value) for text, value in zip(texts, exact, strict=True))
        about = html.escape(f"{field.name}: {docs.get(field.name, '')}")
        lines.append(
            f'<tr><th scope="row" data-name="{html.escape(field.name)}" title="{about}">{html.escape(words)}</th>{cells}</tr>'
        )
    return (
        f'<div class="upright" tabindex="0" role="region" aria-label="{label}">'
        f"<table><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _without_equal(
    table: pa.Table, analysis: SqlObject | None, named: Mapping[str, str]
) -> tuple[pa.Table, str]:
    """Take off a wide table numbers that are the same in all rows, and what is not known in any; say what is in them."""
    if table.num_rows < 2 or table.num_columns < MANY:
        return table, ""
    said, unknown, names = [], [], table.column_names
    for name in names:
        values = table.column(name)
        is_kept = name in _KEYS or not is_number(values.type)
        if len(values.unique()) > 1 or (values[0].is_valid and is_kept):
            continue
        words, texts = column_texts(name, values.slice(0, 1).to_pylist(), analysis, named[name])
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
    return table, f'<p class="quiet">{html.escape(" ".join(lines))}</p>' if lines else ""


def _told_apart(table: pa.Table) -> pa.Table:
    """Leave out the run where there is one alone: it stands in the title."""
    if "run" not in table.column_names or table.num_columns == 1:
        return table
    runs = table.column("run").unique()
    return table.drop_columns(["run"]) if len(runs) == 1 else table


def _heading(name: str, words: str, about: str, place: int, *, number: bool) -> str:
    kind = ' class="number"' if number else ""
    return (
        f'<th scope="col"{kind} data-name="{html.escape(name)}" data-place="{place}" '
        f'title="{html.escape(about)}"><button type="button">{html.escape(words)}</button></th>'
    )


def _number(text: str, value: Any) -> str:
    exact = "" if value is None else str(value)
    sorted_by = "" if exact == text else f' data-v="{exact}"'
    return f'<td class="number"{sorted_by}>{html.escape(text)}</td>'


def _plain(text: str, _: Any) -> str:
    return f"<td>{html.escape(cut_middle(text, CELL_CHARACTERS))}</td>"


def _sentence(text: str, _: Any) -> str:
    return f'<td class="long">{html.escape(cut_middle(text, CELL_CHARACTERS))}</td>'


def _text(text: str, _: Any) -> str:
    """Write a text; of a long one the middle is folded away, but copied and found with the rest."""
    held = cut_middle(text, CELL_CHARACTERS)
    if len(held) <= FOLDED:
        size = "long" if len(held) > LONG else "name" if len(held) > WORD else ""
        kind = f' class="{size}"' if size else ""
        return f"<td{kind}>{html.escape(held)}</td>"
    # What tells kernels apart stands in front of their arguments, and what tells frames at the end.
    tail = FOLDED // 3 if "<" in held else 2 * FOLDED // 3
    parts = (held[: FOLDED - tail], held[FOLDED - tail : -tail], held[-tail:])
    head, middle, end = map(html.escape, parts)
    return f'<td class="long">{head}<s>{middle}</s>{end}</td>'
