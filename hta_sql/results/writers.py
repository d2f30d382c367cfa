"""Writes a result to a stream as CSV, JSON, Parquet, Arrow or Markdown.

CSV, JSON, Parquet and Arrow contain exact values and read back equal. Markdown is for people and
contains the printed table, uncut.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hta_sql.machine import temporary_folder
from hta_sql.results.display import Rows, text_columns

if TYPE_CHECKING:
    import duckdb

_MARKUP = re.compile(r"[\\`*|\[\]]|(?<!\w)_|_(?!\w)")
"""Characters that are Markdown syntax; underscores inside a word are not."""

BATCH_ROWS = 10_000


def write_csv(result: Rows, stream: IO[bytes]) -> None:
    """Write comma-separated values with a header; NULL is empty, an empty string is ``""``.

    A string that a spreadsheet would run as a formula gets a leading apostrophe, and so does one
    that starts with an apostrophe. Removing the first apostrophe restores every string.
    """
    import duckdb  # noqa: PLC0415 - imported only when needed

    with temporary_folder() as folder, duckdb.connect(":memory:") as con:
        path = Path(folder, "rows.csv")
        rows = con.from_arrow(result.arrow())
        columns = [
            (
                _without_formulas(name)
                if kind == duckdb.sqltypes.VARCHAR
                else duckdb.ColumnExpression(name)
            ).alias(f"'{name}" if re.match(_FORMULA, name) else name)
            for name, kind in zip(rows.columns, rows.types, strict=True)
        ]
        rows.select(*columns).write_csv(str(path), header=True)
        with path.open("rb") as written:
            shutil.copyfileobj(written, stream)


_FORMULA = "^['\ufeff\\s]*['=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]"
"""Start of a string that Excel, LibreOffice or Google Sheets would evaluate.

OWASP's list, also after white space or a byte order mark, and its full-width forms.
"""


def _without_formulas(name: str) -> duckdb.Expression:
    import duckdb  # noqa: PLC0415 - imported only when needed

    text, mark = duckdb.ColumnExpression(name), duckdb.ConstantExpression("'")
    runs = duckdb.FunctionExpression("regexp_matches", text, duckdb.ConstantExpression(_FORMULA))
    guarded = duckdb.FunctionExpression("concat", mark, text)
    return duckdb.CaseExpression(runs, guarded).otherwise(text)


def write_json(result: Rows, stream: IO[bytes]) -> None:
    """Write a JSON list with one object per row, each on its own line.

    NaN and infinity, which JSON cannot represent as numbers, become strings.
    """
    separator = "["
    for batch in result.arrow().to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            text = json.dumps(_json_value(row), ensure_ascii=False, allow_nan=False)
            # A lone surrogate cannot be encoded as UTF-8, but can be escaped in JSON.
            stream.write(f"{separator}{text}".encode("utf-8", "backslashreplace"))
            separator = ",\n"
    stream.write(b"[]\n" if separator == "[" else b"]\n")


def _json_value(value: Any) -> Any:
    """Convert values that JSON cannot represent; numbers stay exact."""
    match value:
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case Decimal():
            return _json_number(value)
        case float() if not math.isfinite(value):
            return str(value)
        case None | str() | int() | float():
            return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _json_number(value: Decimal) -> int | float | str:
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def write_parquet(result: Rows, stream: IO[bytes]) -> None:
    """Write one Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - imported only when needed

    pq.write_table(result.arrow(), stream, compression="zstd")


def write_arrow(result: Rows, stream: IO[bytes]) -> None:
    """Write one Arrow IPC file (Feather 2)."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    table = result.arrow()
    with pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table)


def write_markdown(result: Rows, stream: IO[bytes]) -> None:
    """Write a Markdown table, for a pull request or a wiki."""
    columns = text_columns(result)
    lines = [
        [_markdown(column.name) for column in columns],
        ["---:" if column.is_number else "---" for column in columns],
        *(
            [_markdown(cell) for cell in row]
            for row in zip(*(c.cells for c in columns), strict=True)
        ),
    ]
    for line in lines:
        stream.write(f"| {' | '.join(line)} |\n".encode("utf-8", "backslashreplace"))


def _markdown(text: str) -> str:
    """Escape text that would be read as markup: pipes end a cell, angle brackets open a tag."""
    text = _MARKUP.sub(r"\\\g<0>", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


WRITERS: dict[str, Callable[[Rows, IO[bytes]], None]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "markdown": write_markdown,
}
"""Name of a format ─▶ function that writes it."""
