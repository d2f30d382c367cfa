"""Tables whose rows are part of the library: a CSV next to the documenting view in sql/tables.

The first line of the CSV names the view's columns, in order; an empty cell is NULL. The view reads
the rows as ``stored.<name>``. The table ``messages`` has the rows of all files in sql/messages.

The catalog stores the rows as tables. As constants of a view, they would be expressions of each
query that reads them, which the engine's optimizer visits again and again: 0.18 of the 1.27 CPU s
that plain DuckDB takes to plan ``advice``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from hta_sql.errors import LibraryError
from hta_sql.library import sqltext
from hta_sql.library.messages import message_rows
from hta_sql.library.objects import SqlObject


def data_tables(tables: Iterable[SqlObject]) -> tuple[str, ...]:
    """Return the statements that create ``stored.<name>`` for each view with a CSV.

    Raises:
        LibraryError: The columns of a CSV differ from those of its view.
    """
    known = list(tables)
    created = [_created(table, _rows(table)) for table in _with_rows(known)]
    messages = [_created(table, _messages(table)) for table in known if table.name == "messages"]
    return (*created, *messages)


def operation_macros(tables: Iterable[SqlObject]) -> Iterator[str]:
    """Yield the macros ``stored.operator_category`` and ``stored.kernel_category``.

    The macros return NULL if no rule matches. Joining with the rules instead would take 20 µs per
    name and rule: 135 of the 330 ms that ``mfu`` takes on a job of 220,000 events.

    Raises:
        LibraryError: The columns of a CSV differ from those of its view.
    """
    for table in _with_rows(tables):
        if table.name == "operation_categories":
            rules = sorted(_rows(table), key=lambda rule: int(rule[0] or 0))
            for side in ("operator", "kernel"):
                found = [(category, str(regex)) for _, of, category, regex in rules if of == side]
                whole = side == "operator"
                yield sqltext.first_match_macro(f"stored.{side}_category", found, whole=whole)


def _with_rows(tables: Iterable[SqlObject]) -> list[SqlObject]:
    return [table for table in tables if table.path.with_suffix(".csv").exists()]


def _created(table: SqlObject, rows: Iterable[Iterable[str | None]]) -> str:
    columns = {column.name: column.type for column in table.columns}
    name = f"stored.{sqltext.identifier(table.name)}"
    return sqltext.create_table(name, sqltext.values(columns, rows))


def _messages(table: SqlObject) -> list[list[str | None]]:
    return [[cell or None for cell in row] for row in message_rows(table.path.parent.parent)]


def _rows(table: SqlObject) -> list[list[str | None]]:
    path, columns = table.path.with_suffix(".csv"), [column.name for column in table.columns]
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    if header != columns or any(len(line) != len(header) for line in lines):
        raise LibraryError(f"{path}: each line needs the columns {', '.join(columns)}.")
    return [[cell or None for cell in line] for line in lines]
