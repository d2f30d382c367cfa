"""Parses the declarations in a .sql file: parameters from the DDL, columns from the comment."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from hta_sql.errors import LibraryError

_PARAMETER = re.compile(r"^    (\w+)(?: ([A-Z][A-Z0-9_()\[\]]*))?(?: := (.+?))?,?$")
_COLUMN = re.compile(r"^--   (\w+) +([A-Z][A-Z0-9_()\[\]]*)(?: \[([^\]]+)\])?  +(\S.*)$")
_RETURNED = re.compile(r"^-- Returns: ([A-Z][A-Z0-9_()\[\]]*)(?: \[([^\]]+)\])?  +(\S.*)$")
_CONTINUED = re.compile(r"^--    +(\S.*)$")
_COMMENTS = re.compile(r"(?:--.*\n)*")


SCOPE_DOCS = {
    "runs": "Runs to include; NULL means every run.",
    "ranks": "Ranks to include; NULL means every rank.",
    "steps": "Profiler steps to include; NULL means every step and all activity outside steps.",
    "include_last_profiler_step": "Whether to include the last profiler step; a run's only step is always included.",
}
"""Meaning of the scope parameters that a file does not document itself."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a macro, with its type and default as written in the DDL."""

    name: str
    type: str | None
    default: str | None
    doc: str


@dataclass(frozen=True)
class Column:
    """A column of a view or macro; in the comment, its unit is in brackets after its type."""

    name: str
    type: str
    unit: str | None
    doc: str


def comments_at(text: str, start: int) -> list[str]:
    """Return the comment lines that start at an offset."""
    match = _COMMENTS.match(text, start)
    return match.group().splitlines() if match else []


def parameters_in(path: Path, text: str, places: tuple[int, int, int]) -> list[Parameter]:
    """Parse the parameter lines of a macro.

    Args:
        path: Path of the file, for errors.
        text: Contents of the file.
        places: Offsets of the start and end of these lines, and of the body.

    Raises:
        LibraryError: A line does not have the required form.
    """
    start, end, _ = places
    found: list[Parameter] = []
    doc: list[str] = []
    first = text.count("\n", 0, start) + 1
    for number, line in enumerate(text[start:end].splitlines(), first):
        stripped = line.strip()
        if stripped.startswith("--"):
            doc.append(stripped[2:].strip())
        elif match := _PARAMETER.match(line):
            name, kind, default = match.groups()
            found.append(Parameter(name, kind, default, " ".join(doc) or SCOPE_DOCS.get(name, "")))
            doc = []
        elif stripped:
            raise LibraryError(f"{path}:{number}: cannot read the parameter line {stripped!r}.")
    return found


def columns_in(name: str, comments: list[str]) -> list[Column]:
    """Parse the documented columns of a view or macro; a scalar macro has one, of its own name."""
    first, *lines = comments or [""]
    found: list[Column] = []
    if returned := _RETURNED.match(first):
        found.append(Column(name, *returned.groups()))
    elif first != "-- Columns:":
        return []
    for line in lines:
        if match := _COLUMN.match(line):
            found.append(Column(*match.groups()))
        elif found and (continued := _CONTINUED.match(line)):
            last = found[-1]
            found[-1] = replace(last, doc=f"{last.doc} {continued.group(1)}")
        else:
            break
    return found
