"""Allowlists of functions and types for untrusted queries, and size limits of generated data.

A function that recurses into a value overflows the stack if the value is nested deeply enough, and
a query can build such a value at run time. With DuckDB 2.0 and 8 MiB of stack, ``json_contains``
and a cast to VARIANT overflow at a value with 100,000 nested brackets, and ``json_transform`` and
``from_json`` at a structure argument that is nested as deeply.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from hta_sql.errors import QueryError, nearest

MOST_REPEATED = 100_000
"""Maximum number of characters or items that a function may generate from one value."""
MOST_STRUCTURE = 1_000
"""Maximum length of the structure argument of from_json and json_transform [characters]."""

TABLE_FUNCTIONS = frozenset(
    {
        *("generate_series", "json_each", "json_tree", "query_table", "range", "repeat", "unnest"),
        *("duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_views"),
    }
)
READING_TYPES = frozenset(
    [
        "array",
        "bigint",
        "bignum",
        "binary",
        "bit",
        "bitstring",
        "blob",
        "bool",
        "boolean",
        "bpchar",
        "bytea",
        "char",
        "date",
        "datetime",
        "dec",
        "decimal",
        "double",
        "enum",
        "float",
        "float4",
        "float8",
        "guid",
        "hugeint",
        "int",
        "int1",
        "int128",
        "int16",
        "int2",
        "int32",
        "int4",
        "int64",
        "int8",
        "integer",
        "integral",
        "interval",
        "json",
        "list",
        "logical",
        "long",
        "map",
        "numeric",
        "nvarchar",
        "oid",
        "real",
        "row",
        "short",
        "signed",
        "smallint",
        "string",
        "struct",
        "text",
        "time",
        "time_ns",
        "timestamp",
        "timestamp_ms",
        "timestamp_ns",
        "timestamp_s",
        "timestamp_us",
        "timestamptz",
        "timestamptz_ns",
        "timetz",
        "tinyint",
        "tuple",
        "ubigint",
        "uhugeint",
        "uint128",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
        "uinteger",
        "union",
        "usmallint",
        "utinyint",
        "uuid",
        "varbinary",
        "varchar",
        "varint",
    ]
) | {"time with time zone", "timestamp with time zone"}
"""Types that a query may name. VARIANT is excluded, because its casts recurse into values."""
_SIZES = {
    **dict.fromkeys(("repeat", "lpad", "rpad", "list_resize", "array_resize", "bitstring"), 1),
    **dict.fromkeys(("equi_width_bins", "to_base"), 2),
    "bar": 3,
}
"""Function ─▶ index of its size argument. The engine does not count the memory for the result."""
_SERIES = {"range", "generate_series"}
"""Functions whose arguments together determine the size. As table functions, they stream rows."""
_FORMATS = {"format", "printf"}
"""Functions whose result size depends on the widths in the format string, the first argument."""
_STRUCTURED = {"from_json", "from_json_strict", "json_transform", "json_transform_strict"}
"""Functions that recurse into the structure in their second argument."""


@cache
def reading_functions() -> frozenset[str]:
    """Return the allowlist of pure functions."""
    lines = Path(__file__).with_name("reading_functions.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("# ") for word in line.split())


def check_function(name: str, node: dict[str, Any]) -> None:
    """Check that a call to an engine function is pure and does not generate gigabytes.

    Raises:
        QueryError: The function is not on the allowlist, may generate too much data, or may recurse
            too deeply.
    """
    if name not in reading_functions():
        raise refused(f"the function {name}", nearest(name, reading_functions()))
    arguments = [item["expression"] for item in node.get("arguments", ())]
    if name in _STRUCTURED:
        literal = arguments[1].get("literal", {}) if len(arguments) > 1 else {}
        if literal.get("kind") != "STRING" or len(literal["text"]) > MOST_STRUCTURE:
            raise QueryError(
                f"{name}() is allowed only with a literal structure of at most "
                f"{MOST_STRUCTURE:,} characters."
            )
    _check_size(name, arguments)


def check_type(node: dict[str, Any]) -> None:
    """Check a type that a query names, without its nested types.

    Raises:
        QueryError: The type is not on the allowlist.
    """
    name = str(node.get("type_name", "")).lower()
    if name not in READING_TYPES:
        raise refused(f"the type {name}", nearest(name, READING_TYPES))


def refused(what: str, hint: str = "") -> QueryError:
    """Return the error for something that is not on an allowlist."""
    return QueryError(f"Only read-only queries are allowed here, not {what}.{hint}")


def _check_size(function: str, arguments: list[dict[str, Any]]) -> None:
    """Raise if a size in a call's arguments is unknown or may produce gigabytes of data.

    The engine neither counts nor limits the memory for the result.
    """
    if function in _SIZES and len(arguments) > _SIZES[function]:
        sizes = [_size(arguments[_SIZES[function]])]
        says = f"with a size of at most {MOST_REPEATED:,}, as a literal or as least(…, literal)"
    elif function in _SERIES:
        values = [_size(argument) for argument in arguments]
        known = [value for value in values if value is not None]
        span = (min(0, *known) - max(0, *known)) if len(known) > 1 else -max([*map(abs, known), 0])
        sizes = [None if len(known) < len(values) else -span]
        says = (
            f"with literal bounds and at most {MOST_REPEATED:,} numbers, or as a table after FROM"
        )
    elif function in _FORMATS and arguments:
        literal = arguments[0].get("literal", {})
        text = literal.get("text") if literal.get("kind") == "STRING" else None
        widths = re.findall(r"\d+", text or "")
        is_open = text is None or "*" in text or re.search(r"\{[^{}]*\{", text)
        sizes = [None if is_open else max(map(int, widths), default=0)]
        says = f"with a literal format whose widths are literals of at most {MOST_REPEATED:,}"
    else:
        return
    if any(size is None or abs(size) > MOST_REPEATED for size in sizes):
        raise QueryError(f"{function}() is allowed here only {says}.")


def _size(argument: dict[str, Any]) -> int | None:
    """Return an integer constant, or the upper bound given by least(); None if unknown."""
    if argument["class"] == "CAST":
        return _size(argument["child"])
    if argument["class"] == "CONSTANT" and argument["literal"]["kind"] == "INTEGER":
        return int(argument["literal"]["text"])
    if argument["class"] == "FUNCTION" and argument["function_name"].lower() == "least":
        found = [_size(item["expression"]) for item in argument["arguments"]]
        return min((size for size in found if size is not None), default=None)
    return None
