"""Every query of docs/cookbook.md, on a job whose answers were worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import hta_sql
from tests.cookbook.job import Plan, ingest_cookbook, write_job
from tests.cookbook.truth import ANSWERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cookbook.md"
_ENTRY = re.compile(r"^### (\d+)\. (.+?)\n.*?^```sql\n(.+?)^```", re.MULTILINE | re.DOTALL)

QUERIES = {
    int(number): query for number, _, query in _ENTRY.findall(PAGE.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalog of the job: what a client opens."""
    return ingest_cookbook(tmp_path_factory.mktemp("cookbook")) / "catalog.duckdb"


@pytest.fixture(scope="module")
def unnumbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalog of the job as a profiler writes it that does not number collectives."""
    folder = tmp_path_factory.mktemp("unnumbered")
    traces = write_job(folder / "before", Plan(numbers_collectives=False))
    hta_sql.ingest(traces, folder / "job.store", run="before").close()
    return folder / "job.store" / "catalog.duckdb"


def test_every_question_has_an_answer() -> None:
    """All of them, numbered without a hole."""
    assert list(QUERIES) == list(ANSWERS) == list(range(1, 33))


@pytest.mark.parametrize("number", ANSWERS)
def test_answer(number: int, catalog: Path) -> None:
    """The query returns what the plan of the job says."""
    with duckdb.connect(str(catalog), read_only=True) as con:
        assert con.sql(QUERIES[number]).fetchall() == ANSWERS[number]


@pytest.mark.parametrize("number", [5, 18, 19])
def test_collectives_without_a_number_have_the_same_waits(number: int, unnumbered: Path) -> None:
    """What is one collective shows without the profiler's numbers too."""
    with duckdb.connect(str(unnumbered), read_only=True) as con:
        assert con.sql("SELECT count(seq) FROM gpu_ops").fetchall() == [(0,)]
        assert con.sql(QUERIES[number]).fetchall() == ANSWERS[number]
