"""Reads the message catalogue: the CSV files in ``sql/messages``, one per topic.

Analyses return the code of a message and its values; the text comes from the catalogue. This way, a
sentence can be corrected without a new version of a released analysis.
"""

from __future__ import annotations

import csv
import re
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path

from hta_sql.errors import LibraryError

SENTENCES = frozenset({"title", "message", "limits", "remedy", "reason", "about"})
"""Columns of analyses whose text comes from the catalogue."""

FOLDER = "messages"
_PLACEHOLDER = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Message:
    """A row of the catalogue; the columns are those of the table ``messages``."""

    code: str
    title: str
    message: str
    limits: str
    remedy: str

    @property
    def placeholders(self) -> list[tuple[str, str]]:
        """Return name and format of each placeholder of the template."""
        return [(name, form or "") for name, form in _PLACEHOLDER.findall(self.message)]

    @property
    def text_outside(self) -> str:
        """Return the template without its placeholders."""
        return _PLACEHOLDER.sub("", self.message)


def catalogue_files(root: Path) -> list[Path]:
    """List the CSV files of a folder laid out like sql/."""
    return sorted((root / FOLDER).glob("*.csv"))


def read_messages(path: Path) -> list[Message]:
    """Read one file of the catalogue.

    Raises:
        LibraryError: The header or a line does not have the columns of the catalogue.
    """
    header = [field.name for field in fields(Message)]
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if lines[:1] != [header] or any(len(line) != len(header) for line in lines):
        raise LibraryError(f"{path}: each line needs the columns {', '.join(header)}.")
    return [Message(*line) for line in lines[1:]]


@lru_cache(maxsize=4)
def message_rows(root: Path) -> tuple[tuple[str, ...], ...]:
    """Return the rows of the table ``messages``."""
    found = [message for path in catalogue_files(root) for message in read_messages(path)]
    return tuple(astuple(message) for message in found)
