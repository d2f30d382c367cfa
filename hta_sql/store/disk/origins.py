"""The origin of a materialized file (table, run, key), stored in its Parquet metadata.

Materialized files of different runs have the same columns. The origin reveals that a file was
swapped for another file, at the cost of reading the footer.
"""

from __future__ import annotations

import json
from pathlib import Path

ORIGIN = "hta_sql_origin"
"""Key of the origin in the Parquet metadata."""

_TAIL_BYTES = 8
"""Size of the footer length field and the magic number at the end of every Parquet file."""


def origin_of(table: str, run: str, key: str) -> str:
    """Return the origin that a materialized file must name.

    Args:
        table: Derived table or analysis.
        run: Run whose rows the file holds.
        key: Hash of the SQL that computed the file and of the input files; see
            store/catalog/materialized_tables.py.
    """
    return json.dumps({"table": table, "run": run, "key": key})


def names_other_origin(path: Path, origin: str) -> bool:
    """Return whether the footer of a Parquet file names a different origin.

    The footer stores the string uncompressed, so a substring search needs no Parquet parser.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(-_TAIL_BYTES, 2)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-min(size + _TAIL_BYTES, file.tell() + 4), 2)
        footer = file.read()
    return ORIGIN.encode() in footer and origin.encode() not in footer
