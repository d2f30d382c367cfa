"""Run every query in docs/cookbook.md on a job whose answers were computed by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.cookbook.job import Plan, ingest_cookbook, write_job
from tests.cookbook.truth import ANSWERS
from tests.shared_stores import ingest_only

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cookbook.md"
_ENTRY = re.compile(r"^### (\d+)\. (.+?)\n.*?^```sql\n(.+?)^```", re.MULTILINE | re.DOTALL)

QUERIES = {
    int(number): query for number, _, query in _ENTRY.findall(PAGE.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the job's catalog read-only, like a client."""
    path = ingest_cookbook(tmp_path_factory.mktemp("cookbook")) / "catalog.duckdb"
    with duckdb.connect(str(path), read_only=True) as con:
        yield con


@pytest.fixture(scope="module")
def unnumbered(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the catalog of a job whose collectives have no sequence numbers."""
    folder = tmp_path_factory.mktemp("unnumbered")
    traces = write_job(folder / "before", Plan(numbers_collectives=False))
    ingest_only(traces, folder / "job.store", run="before")
    path = folder / "job.store" / "catalog.duckdb"
    with duckdb.connect(str(path), read_only=True) as con:
        yield con


def test_every_question_has_an_answer() -> None:
    """Every question in the cookbook has an answer, and question numbers have no gaps."""
    assert list(QUERIES) == list(ANSWERS) == list(range(1, 33))


@pytest.mark.parametrize("number", ANSWERS)
def test_answer(number: int, catalog: duckdb.DuckDBPyConnection) -> None:
    """Each query returns the answer that was computed by hand."""
    assert catalog.sql(QUERIES[number]).fetchall() == ANSWERS[number]


@pytest.mark.parametrize("number", [5, 18, 19])
def test_collectives_without_a_number_have_the_same_waits(
    number: int, unnumbered: duckdb.DuckDBPyConnection
) -> None:
    """Collectives without sequence numbers are matched with the same result."""
    assert unnumbered.sql("SELECT count(seq) FROM gpu_ops").fetchall() == [(0,)]
    assert unnumbered.sql(QUERIES[number]).fetchall() == ANSWERS[number]
