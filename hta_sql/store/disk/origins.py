"""The origin of a materialized file (table, run, key), which its Parquet metadata names.

Materialized files of two runs have the same columns. A file that was exchanged for another one is
noticed by what it says of itself, at the cost of its footer.
"""

from __future__ import annotations

import json
from pathlib import Path

ORIGIN = "hta_sql_origin"
"""Key of the Parquet metadata."""

_TAIL_BYTES = 8
"""Length of the footer and the magic number, at the end of every Parquet file."""


def origin_of(table: str, run: str, key: str) -> str:
    """Return what a materialized file says of itself.

    Args:
        table: Derived table or analysis.
        run: Run whose rows it holds.
        key: Names the SQL that computed it and the files that this read; see store/catalog/materialized_tables.py.
    """
    return json.dumps({"table": table, "run": run, "key": key})


def names_other_origin(path: Path, origin: str) -> bool:
    """Return whether the footer of a Parquet file names another origin.

    The footer holds texts as they are, so that no parser (and no import of one) is needed.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(-_TAIL_BYTES, 2)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-min(size + _TAIL_BYTES, file.tell() + 4), 2)
        footer = file.read()
    return ORIGIN.encode() in footer and origin.encode() not in footer
