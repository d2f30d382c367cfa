"""Where the .sql files are: inside the installed package, else in the repository."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from hta_sql.errors import LibraryError

Columns = dict[str, dict[str, str]]
"""table ─▶ column ─▶ type"""


@cache
def sql_root() -> Path:
    """Return the folder that holds ingest/, tables/, lib/ and analyses/."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if (folder / "tables").is_dir():
            return folder
    raise LibraryError(
        f"The sql folder is neither in {package} nor beside it; the installation is incomplete. "
        "Reinstall hta-sql."
    )


@cache
def ingest_sql(relative_path: str) -> str:
    """Return the text of one file below sql/ingest, for example ``link/launches``."""
    return (sql_root() / "ingest" / f"{relative_path}.sql").read_text(encoding="utf-8")


@cache
def reader_sql(name: str) -> str:
    """Return the text of one file of sql/readers: what reads files that are no traces."""
    return (sql_root() / "readers" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def stored_columns() -> Columns:
    """Return the columns of all stored tables, as the ingest SQL makes them."""
    columns: Columns = json.loads((sql_root() / "stored_columns.json").read_text(encoding="utf-8"))
    return columns


@cache
def columns_digest() -> str:
    """Name today's columns; the manifest says of each file which columns it was written with."""
    return hashlib.sha256(json.dumps(stored_columns()).encode()).hexdigest()[:16]
