"""SQL statements are parsed once per process, without an effect on their results."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest

from hta_sql.errors import LibraryError
from hta_sql.ingestion import statements
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql, sql_root


def test_each_run_is_one_of_its_own() -> None:
    """A parsed statement can run with different values, connections and tables."""
    ask = "SELECT t.a + $more FROM t"
    for more in (1, 2):
        with duckdb.connect() as con:
            run(con, f"CREATE TABLE t AS SELECT {more} AS a")
            assert run(con, ask, {"more": 10}).fetchall() == [(10 + more,)]
            run(con, "INSERT INTO t VALUES (20)")
            assert run(con, ask, {"more": 1}).fetchall() == [(more + 1,), (21,)]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of cached statements is limited."""
    monkeypatch.setattr(statements, "_parsed", {})
    monkeypatch.setattr(statements, "_MOST", 3)
    with duckdb.connect() as con:
        assert [run(con, f"SELECT {n}").fetchall() for n in range(7)] == [[(n,)] for n in range(7)]
    assert len(statements._parsed) <= 3


SMALL_LINES = 5
"""Maximum number of code lines of a file in sql/ingest that is considered too small."""


def test_small_ingest_statements_share_a_file() -> None:
    """A statement of a few lines shares a file with related statements."""
    folder = sql_root() / "ingest"
    small = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.sql")
        if len([line for line in path.read_text("utf-8").splitlines() if line[:2] != "--"])
        <= SMALL_LINES
    }
    assert small == set()


def test_a_missing_statement_is_reported_with_the_names_of_its_file() -> None:
    """The error for an unknown statement lists the statements in its file."""
    with pytest.raises(LibraryError, match=r"ids\.sql: no statement 'part'; available: part_of"):
        ingest_sql("ids", "part")


def test_a_process_without_a_script_draws_no_progress_bar() -> None:
    """The engine of a worker prints nothing, though it takes such a process for a terminal."""
    code = """
from hta_sql.ingestion.rank import _database
from hta_sql.ingestion.rank_job import RankJob
with _database(RankJob("", "", 0, "", "")) as con:
    print(*con.execute("SELECT current_setting('enable_progress_bar')").fetchone())
import duckdb
print(*duckdb.connect().execute("SELECT current_setting('enable_progress_bar')").fetchone())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    assert done.stdout.split() == ["False", "True"]
