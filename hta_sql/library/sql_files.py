"""Locates and reads the .sql files: in the installed package, or in the repository."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path

from hta_sql.errors import LibraryError

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)

Columns = dict[str, dict[str, str]]
"""Table ─▶ column ─▶ type."""


@cache
def sql_root() -> Path:
    """Return the folder that holds ingest/, tables/, lib/ and analyses/."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if (folder / "tables").is_dir():
            return folder
    raise LibraryError(
        f"The sql folder is neither in {package} nor next to it; the installation is incomplete. "
        "Reinstall hta-sql."
    )


@cache
def ingest_sql(relative_path: str, name: str | None = None) -> str:
    """Return a statement of sql/ingest.

    Args:
        relative_path: Path of the file without its suffix, such as ``link/launches``.
        name: Name of a statement in a file with several; each follows a line ``-- name: NAME``.

    Raises:
        LibraryError: The file has no statement of that name.
    """
    return _statement(sql_root() / "ingest" / f"{relative_path}.sql", name)


@cache
def query_sql(file: str, name: str | None = None) -> str:
    """Return a statement of sql/queries, without comments: their words name no tables.

    The arguments are those of :func:`ingest_sql`.

    Raises:
        LibraryError: The file has no statement of that name.
    """
    text = _statement(sql_root() / "queries" / f"{file}.sql", name)
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _statement(path: Path, name: str | None) -> str:
    text = path.read_text(encoding="utf-8")
    if name is None:
        return text
    # Text before the first name, then names and statements alternate.
    _, *parts = _NAMED.split(text)
    statements = dict(zip(parts[::2], parts[1::2], strict=True))
    if name not in statements:
        raise LibraryError(f"{path}: no statement {name!r}; available: {', '.join(statements)}.")
    return statements[name].rstrip().removesuffix(";")


@cache
def stored_columns() -> Columns:
    """Return the columns of all stored tables, as the ingest SQL creates them."""
    columns: Columns = json.loads((sql_root() / "stored_columns.json").read_text(encoding="utf-8"))
    return columns


@cache
def columns_digest() -> str:
    """Return a digest of the current columns; the manifest records the digest of each rank."""
    return hashlib.sha256(json.dumps(stored_columns()).encode()).hexdigest()[:16]
