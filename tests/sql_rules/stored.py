"""Rule: sql/stored_columns.json lists the columns that sql/ingest stores."""

from __future__ import annotations

from pathlib import Path

import duckdb

from docs.generate import stored_columns


def stored_problems(root: Path) -> list[str]:
    """Return a problem if the list of stored columns is stale, or the engine refuses the ingest."""
    path = root / "stored_columns.json"
    try:
        columns = stored_columns.text()
    except duckdb.Error as error:
        return [f"{root / 'ingest'}: the engine refuses it: {str(error).partition(chr(10))[0]}."]
    if path.read_text(encoding="utf-8") == columns:
        return []
    return [f"{path}: it does not list the columns that sql/ingest stores; run make docs."]
