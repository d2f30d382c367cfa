"""Write sql/stored_columns.json: the columns of stored tables, as the ingest SQL creates them.

Usage: ``python -m docs.generate.stored_columns sql/stored_columns.json``. The columns result from
running the ingest statements on an empty list of events. A test checks that the file is current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from hta_sql.ingestion.artifacts.compiled_kernels import stage_compiled_kernels
from hta_sql.ingestion.artifacts.dumps import stage_dump
from hta_sql.ingestion.artifacts.execution_traces import stage_execution_trace
from hta_sql.ingestion.artifacts.snapshots import stage_snapshot
from hta_sql.ingestion.graph_matching import match_graphs
from hta_sql.ingestion.linking import link_events
from hta_sql.ingestion.rank_job import RankJob, ReadTrace, job_row
from hta_sql.ingestion.staging import stage_events
from hta_sql.ingestion.tables import STORED, frames_of, parameters, rows_of
from hta_sql.ingestion.trace_batch import TraceBatch
from hta_sql.ingestion.vendors.mindspore import stage_cluster_data
from hta_sql.library.sql_files import Columns
from hta_sql.library.sqltext import subquery
from hta_sql.store.disk.manifest import Fingerprint


def defined_columns() -> Columns:
    """Return the columns of each table, by running the ingest on an empty list of events."""
    columns = {}
    with duckdb.connect(":memory:", config={"threads": 1}) as con:
        stage_events(con, TraceBatch([], [0]))
        stage_cluster_data(con, None)
        stage_dump(con, None)
        stage_snapshot(con, None)
        stage_execution_trace(con, None)
        nothing = ReadTrace(RankJob("", "", 0, "", ""), Fingerprint(0, 0, ""), {})
        link_events(con, [job_row(nothing)])
        match_graphs(con, {})
        stage_compiled_kernels(con, {})
        frames = frames_of(con)
        for table in STORED:
            select = subquery(rows_of(table))
            relation = con.sql(select, params=parameters(select, frames)).limit(0)
            columns[table] = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return columns


def text() -> str:
    """Return the expected contents of the file."""
    return json.dumps(defined_columns(), indent=1) + "\n"


def main(paths: list[str]) -> None:
    """Rewrite each file."""
    for path in map(Path, paths):
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
