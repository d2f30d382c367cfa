"""Every query of docs/cookbook.md, on a job whose answers were worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from tests.cookbook.job import ingest_cookbook
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


def test_every_question_has_an_answer() -> None:
    """Thirty of them, numbered without a hole."""
    assert list(QUERIES) == list(ANSWERS) == list(range(1, 31))


@pytest.mark.parametrize("number", ANSWERS)
def test_answer(number: int, catalog: Path) -> None:
    """The query returns what the plan of the job says."""
    with duckdb.connect(str(catalog), read_only=True) as con:
        assert con.sql(QUERIES[number]).fetchall() == ANSWERS[number]


def test_collectives_without_a_number_have_no_waits(catalog: Path) -> None:
    """All of them would be one collective: neither question gives a number then."""
    with duckdb.connect(":memory:") as con:
        con.execute(f"ATTACH '{catalog}' AS job (READ_ONLY)")
        con.execute(
            "CREATE VIEW gpu_ops AS SELECT * REPLACE (NULL::BIGINT AS seq) FROM job.gpu_ops"
        )
        assert con.sql(QUERIES[5]).fetchall() == []
        rows = con.sql(QUERIES[18]).fetchall()
    assert [(rank, us) for rank, us, _ in rows] == [(rank, us) for rank, us, _ in ANSWERS[18]]
    assert {waiting for *_, waiting in rows} == {None}
