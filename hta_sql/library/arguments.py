"""The known arguments of events: their tables, columns, types, and names in HTA.

``sql/ingest/arguments.csv`` has one line per argument. Everything that depends on argument names is
generated from this file: the extraction into tables, the analysis ``event_arguments``, the type
checks, and the columns of HTA's frames. The columns of the file:

    argument        name in the trace
    column          column that stores it in each of the tables; empty: only event_args has it
    form            constraint on the column's values, a line of ``sql/ingest/argument_forms.csv``
    tables          tables whose events have the argument
    categories      for an old spelling: the categories that use it
    level           level from which its type is checked: minimal, standard or complete
    checked_type    integer, number, text or any
    hta_…           key, column, type and default in HTA's lists of arguments
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from hta_sql.library import argument_sql, sqltext
from hta_sql.library.sql_files import sql_root

ARGUMENTS = "arguments.csv"
FORMS = "argument_forms.csv"


class HtaColumn(NamedTuple):
    """An argument in HTA's lists, where each argument is a column of a trace's frame."""

    key: str
    column: str
    type: str
    default: str


@dataclass(frozen=True)
class Form:
    """Constraint on the values of an argument's column.

    If a value does not match, the column is NULL, the value remains in event_args, and the table
    quarantine gets a row about it.

    Attributes:
        name: Name of the form.
        type: SQL type of the column; JSON is text. Empty for a fragment of other patterns.
        limit: Maximum magnitude of a number, maximum size of a string [bytes], or None. It protects
            analyses that pair the ranks of a group: a million ranks would exhaust the memory.
        pattern: Regular expression (RE2) for the whole string, or an empty string.
        description: The form in words: "a list of ranks".
    """

    name: str
    type: str
    limit: int | None
    pattern: str
    description: str


@cache
def argument_forms() -> dict[str, Form]:
    """Return the forms by name, from ``sql/ingest/argument_forms.csv``.

    ``<name>`` in a pattern is replaced by the pattern of an earlier line.
    """
    path = sql_root() / "ingest" / FORMS
    forms: dict[str, Form] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pattern = re.sub(r"<(\w+)>", lambda piece: forms[piece[1]].pattern, row["pattern"])
            limit = int(row["limit"]) if row["limit"] else None
            form = Form(row["form"], row["type"], limit, pattern, row["description"])
            forms[form.name] = form
    return forms


@dataclass(frozen=True)
class Argument:
    """One line of ``arguments.csv``; ``form`` is None for an argument without a column."""

    name: str
    column: str
    form: Form | None
    tables: tuple[str, ...]
    categories: tuple[str, ...]
    level: str
    checked_type: str
    hta: HtaColumn | None

    @property
    def type(self) -> str:
        """SQL type of the argument's column; empty if it has no column."""
        return self.form.type if self.form else ""


@cache
def known_arguments() -> tuple[Argument, ...]:
    """Return the parsed list of arguments."""
    path = sql_root() / "ingest" / ARGUMENTS
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(map(_argument, csv.DictReader(file)))


def _argument(row: dict[str, str]) -> Argument:
    return Argument(
        name=row["argument"],
        column=row["column"],
        form=argument_forms()[row["form"]] if row["form"] else None,
        tables=tuple(row["tables"].split()),
        categories=tuple(row["categories"].split()),
        level=row["level"],
        checked_type=row["checked_type"],
        hta=HtaColumn(*(row[f"hta_{name}"] for name in HtaColumn._fields))
        if row["hta_key"]
        else None,
    )


TRIPLE = "BIGINT[3]"
"""Type of an argument that is stored in three columns of a table: _x, _y and _z."""

FIELDS: dict[str, tuple[str, ...]] = {
    "cpu_ops": (),
    "runtime_calls": ("cat",),
    "gpu_ops": ("cat",),
    "annotations": ("cat",),
    "python_calls": (),
    "memory_events": (),
}
"""Tables with columns for arguments ─▶ event fields to store in addition to the common ones."""


_COMMON = ("event_id", "ts", "dur", "pid", "tid", "name")
_TEXTS = ("VARCHAR", "JSON")


@cache
def extraction(table: str) -> str:
    """Return the SELECT that extracts the events of a batch for a table of :data:`FIELDS`."""
    known = [argument for argument in known_arguments() if table in argument.tables]
    today = {argument.column: argument for argument in known if not argument.categories}
    values = {column: _decoded(argument) for column, argument in today.items()}
    for old in (argument for argument in known if argument.categories):
        value = argument_sql.old_spelling(old.name, _kind(old), old.categories, _whole_keys([old]))
        values[old.column] = f"coalesce({values[old.column]}, {_checked(value, old)})"
    return argument_sql.extraction(
        table,
        (*_COMMON, *FIELDS[table]),
        structure={argument.name: _kind(argument) for argument in today.values()},
        whole_keys=_whole_keys(today.values()),
        columns=values,
        held={argument.name: _held(argument) for argument in today.values()},
    )


def _decoded(argument: Argument) -> str:
    return _checked(argument_sql.decoded(argument.name), argument)


def _checked(value: str, argument: Argument) -> str:
    """Return SQL that is NULL if the value does not match the form of its argument."""
    form = argument.form
    if form is None:
        return value
    if form.type == TRIPLE and form.limit is not None:
        return argument_sql.all_within(value, form.limit)
    if form.pattern:
        return argument_sql.of_form(value, form.name)
    # NaN compares greater than every limit.
    return value if form.limit is None else argument_sql.within(value, form.limit)


def _held(argument: Argument) -> str:
    column = f"c.{argument.column}"
    is_triple = f" AND list_count({column}) = 3 AND len({column}) = 3"
    return f"{column} IS NOT NULL{is_triple if argument.type == TRIPLE else ''}"


def _kind(argument: Argument) -> str:
    """Return the type that the engine parses the argument as."""
    if argument.type == TRIPLE:
        return "BIGINT[]"
    return "VARCHAR" if argument.type in _TEXTS else argument.type


def _whole_keys(arguments: Iterable[Argument]) -> str:
    """Return a regular expression that matches the names of the integer arguments."""
    names = [a.name for a in arguments if a.type not in (*_TEXTS, "DOUBLE")]
    return "|".join(re.sub(r"([^\w ])", r"\\\1", name) for name in names)


@cache
def argument_macros() -> tuple[str, ...]:
    """Return the statements that create the macros about argument forms.

    ``argument_description(name)`` returns the form of an argument in words. For each form with a
    pattern, ``has_form_<form>(text)`` returns whether a string matches.
    """
    described = {a.name: a.form.description for a in known_arguments() if a.form}
    tests = (
        argument_sql.has_form_macro(
            form.name, form.pattern, form.limit, is_json=form.type == "JSON"
        )
        for form in argument_forms().values()
        if form.type and form.pattern
    )
    return (
        sqltext.lookup_macro("argument_description", described, "VARCHAR", "known"),
        *tests,
    )


COLUMNS = {
    "table_name": "VARCHAR",
    "column_name": "VARCHAR",
    "argument": "VARCHAR",
    "is_json": "BOOLEAN",
}
"""Columns of the table stored.argument_columns."""


def argument_columns() -> str:
    """Return the statement that creates the table stored.argument_columns."""
    rows = [
        (table, first_column(argument), argument.name, argument.type != "VARCHAR")
        for argument in known_arguments()
        for table in argument.tables
        if not argument.categories
    ]
    return sqltext.create_table("stored.argument_columns", sqltext.values(COLUMNS, rows))


def first_column(argument: Argument) -> str:
    """Return the column that stores an argument; for a triple, the first of its three columns."""
    return f"{argument.column}_x" if argument.type == TRIPLE else argument.column
