"""Render golden cells that identify a catalogue message by its code and placeholder values.

Examples of such cells are ``@findings.no_steps`` and
``@findings.ranks_missing {"rank_count": 1, "world_size": 2}``. If only the text of a message
changes, a case remains valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import duckdb

from hta_sql.errors import LibraryError
from hta_sql.library.messages import FOLDER, Message, message_rows
from hta_sql.library.sql_files import query_sql, sql_root
from hta_sql.library.sqltext import create_schema

_CELL = re.compile(r"@(?P<code>[a-z]\w*\.\w+)(?: (?P<values>\{.*\}))?")
_OTHER_TEXTS = ("title", "limits", "remedy")


def message_of(cell: str, column: str) -> str:
    """Render a cell that identifies a message; return any other cell unchanged.

    Args:
        cell: A cell of the expected rows.
        column: Name of the column of the cell.

    Raises:
        LibraryError: The catalogue has no message with this code, or the values are not JSON.
    """
    found = _CELL.fullmatch(cell)
    if not found:
        return cell
    try:
        return render(found["code"], json.loads(found["values"] or "{}"), column)
    except json.JSONDecodeError as error:
        raise LibraryError(f"{cell}: the values are not valid JSON: {error}.") from error


def render(code: str, values: Mapping[str, Any] | None = None, column: str = "message") -> str:
    """Return a message of the catalogue with its placeholders filled in.

    Args:
        code: Code of the message.
        values: Placeholder ─▶ value.
        column: ``title``, ``limits`` or ``remedy`` selects that part of the message, which has no
            placeholders. Any other name selects its sentence.

    Raises:
        LibraryError: The catalogue has no message with this code.
    """
    message = _catalogue().get(code)
    if not message:
        raise LibraryError(f"sql/{FOLDER} has no message {code}.")
    if column in _OTHER_TEXTS:
        return str(getattr(message, column))
    fields = {"template": message.message, "fields": json.dumps(dict(values or {}))}
    rows: list[tuple[str]] = _engine().execute(query_sql("engine", "message"), fields).fetchall()
    return rows[0][0]


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Message]:
    return {row[0]: Message(*row) for row in message_rows(sql_root())}


@lru_cache(maxsize=1)
def _engine() -> duckdb.DuckDBPyConnection:
    """Return an engine that has only the macro for rendering messages."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute(create_schema("lib"))
    con.execute((sql_root() / "lib" / "messages" / "message_text.sql").read_text("utf-8"))
    return con
