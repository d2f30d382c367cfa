"""Tables whose rows are the library's own: a CSV beside the view of sql/tables that documents it.

The first line of the CSV names the view's columns, in their order; an empty cell is NULL. The view
reads it as ``stored.<name>``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from hta_sql.errors import LibraryError
from hta_sql.library import sqltext
from hta_sql.library.objects import SqlObject


def data_views(tables: Iterable[SqlObject]) -> tuple[str, ...]:
    """Return the statements that create what the views with a CSV read.

    Raises:
        LibraryError: A CSV has other columns than its view.
    """
    return tuple(_view(table) for table in tables if table.path.with_suffix(".csv").exists())


def _view(table: SqlObject) -> str:
    path = table.path.with_suffix(".csv")
    columns = {column.name: column.type for column in table.columns}
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    if header != list(columns) or any(len(line) != len(header) for line in lines):
        raise LibraryError(f"{path}: each line needs the columns {', '.join(columns)}.")
    rows = [[cell or None for cell in line] for line in lines]
    return sqltext.values_view(f"stored.{sqltext.identifier(table.name)}", columns, rows)
