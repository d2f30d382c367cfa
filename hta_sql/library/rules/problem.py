"""A violation of a rule: file, line and description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hta_sql.library.objects import SqlObject


class Problem(NamedTuple):
    """A problem in a line of a file; the text has no final period."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}."


Found = tuple[str, str]
"""Regular expression that finds the affected line (empty: the first line), and the problem."""


def located(about: SqlObject, found: Found) -> Problem:
    """Return a problem with the number of the affected line."""
    where, text = found
    match = re.search(where, about.text, re.MULTILINE) if where else None
    line = about.text.count("\n", 0, match.start()) + 1 if match else 1
    return Problem(about.path, line, text)


def column_line(name: str) -> str:
    """Return a pattern for the line that documents a column."""
    return rf"^--   {re.escape(name)} "


def parameter_line(name: str) -> str:
    """Return a pattern for the line that declares a parameter."""
    return rf"^    {re.escape(name)}\b"


def fact_line(fact: str) -> str:
    """Return a pattern for the line of a header fact."""
    return rf"^-- {fact}: "


def code_line(name: str) -> str:
    """Return a pattern for the first use of a name in the statement."""
    return rf"^(?! *--).*{re.escape(name)}"
