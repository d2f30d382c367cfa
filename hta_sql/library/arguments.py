"""The arguments of events: which column of which table holds one, its type, and what HTA calls it.

``sql/ingest/arguments.csv`` has a line for each, and everything that knows arguments by name is made
from it: the extraction into tables, the analysis ``event_arguments``, the check of types, the columns
of HTA's frames. Its columns:

    argument        name in the trace
    column          column that holds it in each of the tables; empty: only event_args holds it
    form            what the column promises, a line of ``sql/ingest/argument_forms.csv``
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

from hta_sql.library import argument_sql, sqltext
from hta_sql.library.sql_files import sql_root

ARGUMENTS = "arguments.csv"
FORMS = "argument_forms.csv"


class HtaColumn(NamedTuple):
    """An argument as HTA lists it: a column of its frames."""

    key: str
    column: str
    type: str
    default: str
    since: str


@dataclass(frozen=True)
class Form:
    """What a column promises of the values of an argument.

    A value that is not of the form leaves the column NULL. It stays in event_args, and quarantine
    has a row for it.

    Attributes:
        name: Name of the form.
        type: SQL type of the column; JSON is text. Empty for a piece of other patterns.
        limit: Largest absolute value of a number, most bytes of a text, or None. Analyses pair the ranks
            of a group: a list of a million of them would take all memory.
        pattern: Regular expression (RE2) that all of a text matches, or an empty string.
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

    ``<name>`` in a pattern stands for the pattern of an earlier line.
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
    """One line of the list; ``form`` is None for an argument without a column."""

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
        """SQL type of its column; empty if no column holds it."""
        return self.form.type if self.form else ""


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
    """Return SQL that is NULL instead of a value that is not of the form of its argument."""
    form = argument.form
    if form is None:
        return value
    if form.type == TRIPLE and form.limit is not None:
        return argument_sql.all_within(value, form.limit)
    if form.pattern:
        return argument_sql.of_form(value, form.name)
    # NaN is larger than every limit.
    return value if form.limit is None else argument_sql.within(value, form.limit)


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


@cache
def argument_macros() -> tuple[str, ...]:
    """Return the statements that create the macros about forms.

    ``argument_description(name)`` is the form of an argument in words; ``has_form_<form>(text)``
    tests a text for each form with a pattern.
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
