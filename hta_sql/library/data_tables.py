"""Tables whose rows are part of the library: a CSV next to the documenting view in sql/tables.

The first line of the CSV names the view's columns, in order; an empty cell is NULL. The view reads
the rows as ``stored.<name>``. The table ``messages`` has the rows of all files in sql/messages.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from hta_sql.errors import LibraryError
from hta_sql.library import sqltext
from hta_sql.library.messages import message_rows
from hta_sql.library.objects import SqlObject


def data_views(tables: Iterable[SqlObject]) -> tuple[str, ...]:
    """Return the statements that create ``stored.<name>`` for each view with a CSV.

    Raises:
        LibraryError: The columns of a CSV differ from those of its view.
    """
    known = list(tables)
    views = [_view(table) for table in _with_rows(known)]
    messages = [_view_of_messages(table) for table in known if table.name == "messages"]
    return (*views, *messages)


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


def _view(table: SqlObject) -> str:
    columns = {column.name: column.type for column in table.columns}
    return sqltext.values_view(f"stored.{sqltext.identifier(table.name)}", columns, _rows(table))


def _view_of_messages(table: SqlObject) -> str:
    columns = [column.name for column in table.columns]
    rows = message_rows(table.path.parent.parent)
    return sqltext.packed_view(f"stored.{sqltext.identifier(table.name)}", columns, rows)


def _rows(table: SqlObject) -> list[list[str | None]]:
    path, columns = table.path.with_suffix(".csv"), [column.name for column in table.columns]
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    if header != columns or any(len(line) != len(header) for line in lines):
        raise LibraryError(f"{path}: each line needs the columns {', '.join(columns)}.")
    return [[cell or None for cell in line] for line in lines]
