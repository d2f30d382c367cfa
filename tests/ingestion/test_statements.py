"""Statements are parsed once a process, and run as if each were parsed anew."""

from __future__ import annotations

import duckdb
import pytest

from hta_sql.ingestion import statements
from hta_sql.ingestion.statements import run


def test_each_run_is_one_of_its_own() -> None:
    """With its own values, on its own connection, over the tables of that moment."""
    ask = "SELECT t.a + $more FROM t"
    for more in (1, 2):
        with duckdb.connect() as con:
            run(con, f"CREATE TABLE t AS SELECT {more} AS a")
            assert run(con, ask, {"more": 10}).fetchall() == [(10 + more,)]
            run(con, "INSERT INTO t VALUES (20)")
            assert run(con, ask, {"more": 1}).fetchall() == [(more + 1,), (21,)]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of classes of a user's own make other statements; a long-lived process forgets some."""
    monkeypatch.setattr(statements, "_parsed", {})
    monkeypatch.setattr(statements, "_MOST", 3)
    with duckdb.connect() as con:
        assert [run(con, f"SELECT {n}").fetchall() for n in range(7)] == [[(n,)] for n in range(7)]
    assert len(statements._parsed) <= 3
