"""The queries in docs/communication.md work, and the names on the page exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from hta_sql.library.objects import load_library
from hta_sql.store.catalog.materialize import materialize
from tests.jobs.kinds import LATE
from tests.jobs.traces import write_job
from tests.shared_stores import ingest_only

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "communication.md").read_text("utf-8")
QUERIES = [
    line.partition(";")[0]
    for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return the catalog of a job in which rank 2 is a straggler."""
    folder = tmp_path_factory.mktemp("page")
    paths, _ = write_job(folder / "traces", LATE)
    ingest_only(paths, folder / "job.store")
    materialize(folder / "job.store")
    with duckdb.connect(str(folder / "job.store" / "catalog.duckdb"), read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers(con: duckdb.DuckDBPyConnection, query: str) -> None:
    """All queries return rows, except those for mismatches and slow links, as there are none."""
    assert bool(con.sql(query).fetchall()) != ("mismatches" in query or "slow_links" in query)


def test_the_late_rank_is_named(con: duckdb.DuckDBPyConnection) -> None:
    """The first query of the page identifies rank 2 as the straggler."""
    rows = con.sql(QUERIES[0]).fetchall()
    assert [(rank, verdict) for rank, verdict, _ in rows if verdict != "none"] == [(2, "straggler")]
    assert all((message is not None) == (rank == 2) for rank, _, message in rows)


def test_names_are_those_of_analyses_and_columns(con: duckdb.DuckDBPyConnection) -> None:
    """Every word in backticks on the page is a known name, such as an analysis or a column."""
    library = load_library()
    known = {analysis.base_name for analysis in library.newest()}
    known |= {column.name for analysis in library.newest() for column in analysis.columns}
    known |= {p.name for analysis in library.newest() for p in analysis.parameters}
    known |= {"matched_collectives", "step_parts", "record_param_comms", "Seq", "doctor", "unknown"}
    known |= {"replays", "uniform", "balanced", "lower", "upper"}
    text = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    words = set(re.findall(r"`(\w+)`", text))
    assert words <= known
    assert con
