"""A rule that a file breaks: what, and in which line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hta_sql.library.objects import SqlObject


class Problem(NamedTuple):
    """What is wrong in a line of a file; the text without a full stop."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}."


Found = tuple[str, str]
"""A pattern of the line that is meant, or nothing for the first one; and what is wrong."""


def located(about: SqlObject, found: Found) -> Problem:
    """Find the line of a problem."""
    where, text = found
    match = re.search(where, about.text, re.MULTILINE) if where else None
    line = about.text.count("\n", 0, match.start()) + 1 if match else 1
    return Problem(about.path, line, text)


def column_line(name: str) -> str:
    """Where a column is documented."""
    return rf"^--   {re.escape(name)} "


def parameter_line(name: str) -> str:
    """Where a parameter is declared."""
    return rf"^    {re.escape(name)}\b"


def fact_line(fact: str) -> str:
    """Where a fact stands in the header."""
    return rf"^-- {fact}: "


def code_line(name: str) -> str:
    """Where a name first stands in the statement."""
    return rf"^(?! *--).*{re.escape(name)}"
