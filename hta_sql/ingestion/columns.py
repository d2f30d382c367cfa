"""The columns of stored tables, as the ingest SQL makes them.

They come from running the ingest statements over no events, so they cannot drift. That takes a
quarter of a second, so the outcome is kept for each state of the ingest SQL.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache

import duckdb

from hta_sql.ingestion.fingerprints import definitions
from hta_sql.ingestion.mindspore import stage_cluster_data
from hta_sql.ingestion.rank import RankJob, link_events
from hta_sql.ingestion.staging import stage_events
from hta_sql.ingestion.tables import STORED
from hta_sql.machine import cache_folder
from hta_sql.sqlfiles import ingest_sql
from hta_sql.sqltext import without_rows
from hta_sql.store_files import replacing

Columns = dict[str, dict[str, str]]
"""table ─▶ column ─▶ type"""


@cache
def stored_columns() -> Columns:
    """Return the columns of all stored tables."""
    folder = cache_folder() / "columns"
    path = folder / f"{definitions()[:24]}-duckdb{duckdb.__version__}.json"
    try:
        columns: Columns = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        columns = _defined_columns()
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(json.dumps(columns), encoding="utf-8")
    return columns


@cache
def columns_digest() -> str:
    """Name today's table definitions; files of another digest cannot be read together."""
    return hashlib.sha256(json.dumps(stored_columns()).encode()).hexdigest()[:16]


def _defined_columns() -> Columns:
    columns = {}
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        stage_events(con, None)
        stage_cluster_data(con, None)
        link_events(con, RankJob("", "", 0, "", ""), {}, 0)
        for table in STORED:
            relation = con.sql(without_rows(ingest_sql(f"store/{table}")))
            columns[table] = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return columns
