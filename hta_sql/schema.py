"""The columns of stored tables, as the ingest SQL makes them: one empty Parquet file a table.

A table of which no rank has a row still needs its columns and types. They come
from running the ingest statements over no events, so they cannot drift.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import duckdb

from hta_sql.ingestion.rank import STORED, RankJob, copy_to_parquet, link_events
from hta_sql.ingestion.staging import stage_events
from hta_sql.sqlfiles import ingest_sql

EMPTY = "empty"


def empty_tables(store: Path) -> dict[str, Path]:
    """Return table ─▶ path of its empty file, writing those that are missing."""
    folder = store / EMPTY
    paths = {table: folder / f"{table}.{_definition(table)}.parquet" for table in STORED}
    if not all(path.exists() for path in paths.values()):
        folder.mkdir(parents=True, exist_ok=True)
        _write(paths)
    return paths


def _definition(table: str) -> str:
    return hashlib.sha256(ingest_sql(f"store/{table}").encode()).hexdigest()[:12]


def _write(paths: dict[str, Path]) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        stage_events(con, None)
        link_events(con, RankJob("", "", 0, "", ""), {}, 0)
        for table, path in paths.items():
            partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
            copy_to_parquet(con, f"FROM (\n{ingest_sql(f'store/{table}')}\n) LIMIT 0", partial)
            partial.replace(path)
