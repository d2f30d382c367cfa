"""Calls of every function of the engine and of the library, with paths and names as arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

FUNCTIONS = """
    SELECT DISTINCT
        schema_name, function_name, function_type, parameter_types, parameters, varargs, internal
    FROM duckdb_functions()
    ORDER BY ALL
"""

TABLE_LIKE = {"table", "table_macro", "pragma"}

_TEXT = {"VARCHAR", "ANY", "JSON", "T", "K", "V", "STRING_LITERAL", "BLOB", "VARIANT"}
_POSITIONAL = 2
"""Number of arguments that are tried by position, before all of them are."""


@dataclass(frozen=True)
class Function:
    """One signature of a function."""

    schema: str
    name: str
    kind: str
    types: tuple[str | None, ...]
    parameters: tuple[str, ...]
    more: str | None
    is_of_engine: bool

    @property
    def takes_texts(self) -> bool:
        """Whether an argument may be a path, a name or a query."""
        kinds = {str(kind or "ANY").upper().rstrip("[]") for kind in self.types}
        return bool(not kinds.isdisjoint(_TEXT) or "macro" in self.kind or not kinds or self.more)


def functions_of(con: duckdb.DuckDBPyConnection) -> list[Function]:
    """Return the functions of an engine; operators, which compute on their operands, are left out."""
    rows = con.execute(FUNCTIONS).fetchall()
    return [
        Function(
            schema, name, kind, tuple(types or ()), tuple(parameters or ()), more, is_of_engine
        )
        for schema, name, kind, types, parameters, more, is_of_engine in rows
        if re.match(r"[A-Za-z_]", name)
    ]


def calls(function: Function, paths: Sequence[str]) -> Iterator[str]:
    """Yield the queries that call a function with each path; few for macros of the library."""
    types = function.types
    if "macro" in function.kind:
        types = ("ANY",) * len(function.parameters)
    if not types and not function.more:
        paths = paths[:1]
    for path in paths if function.is_of_engine else paths[:1]:
        if function.kind not in TABLE_LIKE:
            yield f"SELECT {_called(function, [_value(kind, path) for kind in types])}"
            if function.more:
                more = [_value(kind, path) for kind in (*types, function.more, function.more)]
                yield f"SELECT {_called(function, more)}"
            continue
        for arguments in _of_table(function, types, path):
            yield f"FROM {_called(function, arguments)}"


def _of_table(function: Function, types: tuple[str | None, ...], path: str) -> Iterator[list[str]]:
    """Yield the arguments of a table function: some positional ones, and one by name."""
    named = [*zip(types, function.parameters, strict=False)]
    for count in range(min(len(types), _POSITIONAL) + 1):
        positional = [_value(kind, path) for kind in types[:count]]
        yield positional
        if function.more:
            yield [*positional, _value(function.more, path)]
        for kind, name in named[count:] if count <= 1 else ():
            if not re.fullmatch(r"col\d+", name):
                yield [*positional, f'"{name}" := {_value(kind, path)}']
    if len(types) > _POSITIONAL:
        yield [_value(kind, path) for kind in types]


def _called(function: Function, arguments: list[str]) -> str:
    return f'"{function.schema}"."{function.name}"({", ".join(arguments)})'


def _value(kind: str | None, path: str) -> str:
    """Write a path, or a value of another type, as an argument."""
    name = (kind or "ANY").upper()
    text = "'" + path.replace("'", "''") + "'"
    if name.endswith("[]"):
        return f"[{_value(name[:-2], path)}]"
    if name.startswith("MAP"):
        return f"MAP {{{text}: {text}}}"
    if name == "BOOLEAN":
        return "true"
    if name in ("BLOB", "JSON"):
        return f"{text}::{name}"
    if "INT" in name or name in ("DOUBLE", "FLOAT", "DECIMAL"):
        return "1"
    return text
