"""Convert rows and values to JSON of bounded size, measured in Arrow before conversion."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hta_sql.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

Answer = dict[str, Any]

LONGEST_TEXT = 2_000
"""Maximum characters of a text: kernel names and queries fit, megabytes of arguments do not."""

LONGEST_NAME = 200
"""Maximum characters of a column name or key."""

MOST_COLUMNS = 500
MOST_ITEMS = 1_000
"""Maximum items of a nested value, over all levels."""

MOST_DEPTH = 8
"""Maximum levels of a nested value."""

MOST_BYTES = 1_000_000
"""Maximum bytes of an answer as JSON."""

_COUNTED_BYTES = 1_000_000
"""Maximum bytes of a text for which characters are counted."""

_CELL_BYTES = 32_000
"""Maximum bytes of a nested value in Arrow."""

_AS_TEXT = (decimal.Decimal, dt.date, dt.time, dt.timedelta)
"""Types that JSON cannot represent."""


def plain_rows(
    table: pa.Table, most_bytes: int, enough_bytes: int | None = None
) -> list[dict[str, Any]]:
    """Return as many rows as fit, as JSON values; long values are truncated and marked.

    Args:
        table: The rows.
        most_bytes: Maximum bytes of the rows.
        enough_bytes: Bytes that rows after the first one must not exceed; default: the maximum.

    Raises:
        QueryError: There are too many columns, or the first row does not fit.
    """
    if table.num_columns > MOST_COLUMNS:
        raise QueryError(
            f"The result has {table.num_columns:,} columns. Select at most {MOST_COLUMNS}."
        )
    names = [cut(name, LONGEST_NAME) for name in table.column_names]
    rows: list[dict[str, Any]] = []
    used = 0
    for at in range(table.num_rows):
        row = {
            name: _cell(column, at) for name, column in zip(names, table.itercolumns(), strict=True)
        }
        used += size_of(row)
        if rows and used > (enough_bytes or most_bytes):
            break
        if used > most_bytes:
            raise QueryError(f"One row is larger than {most_bytes:,} bytes. Select fewer columns.")
        rows.append(row)
    return rows


def plain(value: Any, depth: int = MOST_DEPTH) -> Any:
    """Return a value as JSON, truncated to the limits on string length, items and nesting."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, (Mapping, list, tuple)):
        if not depth:
            return f"… ({len(value):,} items)"
        if isinstance(value, Mapping):
            few = list(value.items())[:MOST_ITEMS]
            return {cut(str(key), LONGEST_NAME): plain(part, depth - 1) for key, part in few}
        return [plain(part, depth - 1) for part in value[:MOST_ITEMS]]
    odd = isinstance(value, float) and not math.isfinite(value)
    return str(value) if odd or isinstance(value, _AS_TEXT) else value


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Truncate a long string and append its length."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def size_of(value: Any) -> int:
    """Return the size of a value as JSON [bytes]."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _cell(column: pa.ChunkedArray, at: int) -> Any:
    """Return one value; only the visible part of a large value becomes a Python object."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    cell = column[at]
    if pa.types.is_dictionary(cell.type) and cell.is_valid:
        cell = cell.value
    if not cell.is_valid:
        return None
    if pa.types.is_nested(cell.type):
        too_large = _too_large(_array_of(column, at))
        return too_large or plain(cell.as_py())
    return _flat(cell)


def _flat(cell: pa.Scalar) -> Any:
    """Return a value that is not nested.

    Does not use pyarrow.compute, which could truncate strings but takes 0.1 s to import.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    if pa.types.is_string(cell.type) or pa.types.is_large_string(cell.type):
        content = cell.as_buffer()
        if content.size <= _COUNTED_BYTES:
            return cut(cell.as_py())
        few = content.slice(0, 4 * LONGEST_TEXT).to_pybytes().decode(errors="ignore")
        return f"{few[:LONGEST_TEXT]}… ({content.size:,} bytes)"
    if pa.types.is_binary(cell.type) or pa.types.is_large_binary(cell.type):
        return f"{cell.as_buffer().size:,} bytes"
    return plain(cell.as_py())


def _too_large(array: pa.Array) -> str | None:
    """Return a placeholder for a nested value that is too large, or None if it fits."""
    if _depth(array.type) > MOST_DEPTH:
        return f"… (nested more than {MOST_DEPTH} levels deep)"
    if (items := _items(array)) > MOST_ITEMS:
        return f"… ({items:,} items)"
    return f"… ({array.nbytes:,} bytes)" if array.nbytes > _CELL_BYTES else None


def _array_of(column: pa.ChunkedArray, at: int) -> pa.Array:
    """Return one value as a separate array."""
    return column.slice(at, 1).combine_chunks()


def _depth(kind: pa.DataType) -> int:
    """Return the nesting depth of a type; not recursive, because queries may nest thousands."""
    depth, level = 0, [kind]
    while level and depth <= MOST_DEPTH:
        level = [t.field(i).type for t in level for i in range(t.num_fields)]
        depth += bool(level)
    return depth


def _items(array: pa.Array) -> int:
    """Return the number of values in an array, over all levels."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    if pa.types.is_struct(array.type):
        inner = array.flatten()
    elif pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        inner = [part.slice(first, last - first) for part in (array.keys, array.items)]
    elif pa.types.is_nested(array.type) and hasattr(array, "flatten"):
        inner = [array.flatten()]
    else:
        return len(array)
    return sum(len(part) for part in inner) + sum(
        _items(part) for part in inner if pa.types.is_nested(part.type)
    )
