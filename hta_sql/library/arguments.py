"""The arguments of events: which column of which table holds one, its type, and what HTA calls it.

``sql/ingest/arguments.csv`` has a line for each, and everything that knows arguments by name is made
from it: the extraction into tables, the analysis ``event_arguments``, the check of types, the columns
of HTA's frames. Its columns:

    argument        name in the trace
    column          column that holds it, in each of the tables; none: event_args keeps it
    type            of that column; JSON: its text as the trace writes it
    tables          tables whose events have it
    categories      an old spelling, of events of these categories alone
    level           level from which its type is checked: minimal, standard or complete
    checked_type    integer, number, text or any
    hta_…           key, column, type, default and version in HTA's lists of arguments
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from hta_sql.library import sqltext
from hta_sql.library.files import sql_root

ARGUMENTS = "arguments.csv"


class HtaColumn(NamedTuple):
    """An argument as HTA lists it: a column of its frames."""

    key: str
    column: str
    type: str
    default: str
    since: str


@dataclass(frozen=True)
class Argument:
    """One line of the list."""

    name: str
    column: str
    type: str
    tables: tuple[str, ...]
    categories: tuple[str, ...]
    level: str
    checked_type: str
    hta: HtaColumn | None


@cache
def known_arguments() -> tuple[Argument, ...]:
    """Read the list."""
    path = sql_root() / "ingest" / ARGUMENTS
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(map(_argument, csv.DictReader(file)))


def _argument(row: dict[str, str]) -> Argument:
    return Argument(
        name=row["argument"],
        column=row["column"],
        type=row["type"],
        tables=tuple(row["tables"].split()),
        categories=tuple(row["categories"].split()),
        level=row["level"],
        checked_type=row["checked_type"],
        hta=HtaColumn(*(row[f"hta_{name}"] for name in HtaColumn._fields))
        if row["hta_key"]
        else None,
    )


MOST_BYTES = 1 << 50
"""No copy and no memory is larger: a number beyond it is no size, and sums of sizes fit 64 bits."""

TRIPLE = "BIGINT[3]"
"""Type of an argument that stands in three columns of a table: _x, _y and _z."""

FIELDS: dict[str, tuple[str, ...]] = {
    "cpu_ops": (),
    "runtime_calls": ("cat",),
    "gpu_ops": ("cat",),
    "annotations": ("cat",),
    "python_calls": (),
    "memory_events": (),
}
"""Tables whose columns hold arguments ─▶ what they keep of an event beside the common fields."""


_COMMON = ("event_id", "ts", "dur", "pid", "tid", "name")
_TEXTS = ("VARCHAR", "JSON")


@cache
def extraction(table: str) -> str:
    """Return the SELECT that brings the events of one batch into a table of :data:`FIELDS`."""
    known = [argument for argument in known_arguments() if table in argument.tables]
    today = {argument.column: argument for argument in known if not argument.categories}
    values = {column: _decoded(argument) for column, argument in today.items()}
    for old in (argument for argument in known if argument.categories):
        value = sqltext.old_spelling(old.name, _kind(old), old.categories, _whole_keys([old]))
        values[old.column] = f"coalesce({values[old.column]}, {value})"
    return sqltext.extraction(
        table,
        (*_COMMON, *FIELDS[table]),
        structure={argument.name: _kind(argument) for argument in today.values()},
        whole_keys=_whole_keys(today.values()),
        columns=values,
        held=map(_held, today.values()),
    )


def _decoded(argument: Argument) -> str:
    value = sqltext.decoded(argument.name)
    # The text Infinity is a DOUBLE for the engine; what stays here is among the leftover arguments.
    if argument.type == "DOUBLE":
        return f"CASE WHEN isfinite({value}) THEN {value} END"
    if argument.column.endswith("bytes"):
        return f"CASE WHEN {value} BETWEEN {-MOST_BYTES} AND {MOST_BYTES} THEN {value} END"
    return value


def _held(argument: Argument) -> str:
    column = f"c.{argument.column}"
    is_triple = f" AND list_count({column}) = 3 AND len({column}) = 3"
    return f"{column} IS NOT NULL{is_triple if argument.type == TRIPLE else ''}"


def _kind(argument: Argument) -> str:
    """Return the type that the engine reads it as."""
    if argument.type == TRIPLE:
        return "BIGINT[]"
    return "VARCHAR" if argument.type in _TEXTS else argument.type


def _whole_keys(arguments: Iterable[Argument]) -> str:
    """Return the names of whole numbers as alternatives of a regular expression."""
    names = [a.name for a in arguments if a.type not in (*_TEXTS, "DOUBLE")]
    return "|".join(re.sub(r"([^\w ])", r"\\\1", name) for name in names)


COLUMNS = {
    "table_name": "VARCHAR",
    "column_name": "VARCHAR",
    "argument": "VARCHAR",
    "is_json": "BOOLEAN",
}
"""Of the view stored.argument_columns."""


def argument_columns() -> str:
    """Return the statement that creates the view stored.argument_columns."""
    rows = [
        (table, first_column(argument), argument.name, argument.type != "VARCHAR")
        for argument in known_arguments()
        for table in argument.tables
        if not argument.categories
    ]
    return sqltext.values_view("stored.argument_columns", COLUMNS, rows)


def first_column(argument: Argument) -> str:
    """Name the column of the tables that holds an argument; the first, where it is a triple."""
    return f"{argument.column}_x" if argument.type == TRIPLE else argument.column
