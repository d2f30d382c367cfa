"""Converts engine values that Arrow or Python cannot represent to text, as DuckDB formats them.

Some types have no exact equivalent in Arrow (``INTERVAL``, ``UHUGEINT``, ``TIMETZ`` and others):
the engine casts their columns to VARCHAR. Arrow can represent every date and time, but Python has
no year after 9999 and no infinity. A column with such a value becomes text as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_WITHOUT_ARROW = frozenset(
    (
        *("bignum", "bit", "geometry", "interval", "time with time zone", "time_ns"),
        *("timestamptz_ns", "type", "uhugeint", "union", "variant"),
    )
)
"""Types that Arrow, Parquet or pandas lack or represent with a loss."""

_WITHOUT_PYTHON = _WITHOUT_ARROW | {
    *("date", "time", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
    "timestamp with time zone",
}
"""Types with values that Python cannot represent."""

_ONLY_ALONE = frozenset(("enum", "null"))
"""Types that the engine or Arrow cannot always read inside a nested value."""

_NESTED = frozenset(("array", "list", "map", "struct", "tuple"))

_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - date(1970, 1, 1).toordinal() for day in (date(1, 1, 2), date(9999, 12, 30))
)
"""First and last day since 1970 that Python can represent in every time zone."""
_UNITS_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": _DAY_US}


def table_of_relation(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """Compute a relation; columns without an exact equivalent in Arrow become text."""
    if not lacks_arrow(relation.types):
        return relation.to_arrow_table()
    return _cast(relation, [_lacks(kind, _WITHOUT_ARROW) for kind in relation.types])


def lacks_arrow(kinds: Iterable[duckdb.sqltypes.DuckDBPyType]) -> bool:
    """Return whether any of these types has values that Arrow cannot represent."""
    return any(_lacks(kind, _WITHOUT_ARROW) for kind in kinds)


def lacks_python(kinds: Iterable[duckdb.sqltypes.DuckDBPyType]) -> bool:
    """Return whether any of these types has values that Python cannot represent."""
    return any(_lacks(kind, _WITHOUT_PYTHON) for kind in kinds)


def fitting(table: pa.Table) -> pa.Table:
    """Return a table whose values Python and pandas can represent.

    128-bit integers, which every ``sum()`` of integers returns, become 64-bit integers: in Arrow
    they are DECIMAL(38, 0), which pandas converts to objects. A column with a value beyond 64 bits
    is unchanged, or becomes text if a value has 39 digits. A column with a date or time outside
    Python's range becomes text.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    for index, field in enumerate(table.schema):
        if field.type == pa.decimal128(38, 0):
            for kind in (pa.int64(), field.type, pa.string()):
                with suppress(pa.ArrowInvalid):
                    narrowed = _checked(table.column(index), kind)
                    table = table.set_column(index, field.with_type(kind), narrowed)
                    break
    beyond = [any(map(_is_beyond_python, column.chunks)) for column in table.columns]
    return _as_text(table, beyond) if any(beyond) else table


def _checked(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast a column of 128-bit integers to a type.

    Raises:
        ArrowInvalid: A number has more digits than the type can represent.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_decimal(kind):
        ends = pc.min_max(column).values()
        if any(end.is_valid and abs(end.as_py()) >= 10**kind.precision for end in ends):
            raise pa.ArrowInvalid("more digits than the type can represent")
    return column.cast(kind)


def _lacks(kind: duckdb.sqltypes.DuckDBPyType, lacking: frozenset[str]) -> bool:
    if kind.id in _NESTED:
        inner = [child for _, child in kind.children if not isinstance(child, (int, list))]
        return any(child.id in _ONLY_ALONE or _lacks(child, lacking) for child in inner)
    return kind.id in lacking


def _cast(relation: duckdb.DuckDBPyRelation, are_text: list[bool]) -> pa.Table:
    """Compute a relation, with the flagged columns as VARCHAR; column names may be duplicated."""
    import duckdb  # noqa: PLC0415 - imported only when needed

    columns = []
    for position, (name, is_text) in enumerate(zip(relation.columns, are_text, strict=True)):
        column = duckdb.SQLExpression(f"#{position + 1}")
        columns.append((column.cast("VARCHAR") if is_text else column).alias(name))
    return relation.select(*columns).to_arrow_table()


def _as_text(table: pa.Table, are_text: list[bool]) -> pa.Table:
    import duckdb  # noqa: PLC0415 - imported only when needed

    with duckdb.connect(":memory:") as con:
        texts = table.select([at for at, is_text in enumerate(are_text) if is_text])
        cast = _cast(con.from_arrow(texts), [True] * texts.num_columns)
    columns = iter(cast.columns)
    for at, is_text in enumerate(are_text):
        if is_text:
            column = next(columns)
            table = table.set_column(at, table.field(at).with_type(column.type), column)
    return table


def _is_beyond_python(values: pa.Array) -> bool:
    """Return whether an array, nested values included, has dates outside Python's range."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    kind = values.type
    if pa.types.is_nested(kind):
        is_map, is_union = pa.types.is_map(kind), pa.types.is_union(kind)
        inner = (values.keys, values.items) if is_map else () if is_union else values.flatten()
        return any(map(_is_beyond_python, [inner] if isinstance(inner, pa.Array) else inner))
    if pa.types.is_date32(kind):
        return _is_outside(values.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    if pa.types.is_timestamp(kind) and kind.unit in _UNITS_PER_DAY:
        units = _UNITS_PER_DAY[kind.unit]
        return _is_outside(values.cast(pa.int64()), _FIRST_DAY * units, _LAST_DAY * units)
    is_time = pa.types.is_time64(kind)
    return is_time and _is_outside(values.cast(pa.int64()), 0, _DAY_US - 1)


def _is_outside(values: pa.Array, least: int, most: int) -> bool:
    import pyarrow.compute as pc  # noqa: PLC0415 - imported only when needed

    found = pc.min_max(values)
    return (
        found["min"].is_valid and not least <= found["min"].as_py() <= found["max"].as_py() <= most
    )
