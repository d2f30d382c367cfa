"""Engine behavior that the library relies on and that some DuckDB versions got wrong."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest


@pytest.mark.parametrize("limit", ["20MB", "30MB"])
def test_a_join_that_spills_loses_no_row(limit: str, tmp_path: Path) -> None:
    """A join must not filter spilled rows by the keys in memory (duckdb/duckdb#25702)."""
    with duckdb.connect(str(tmp_path / "spill.duckdb"), config={"threads": 1}) as con:
        con.execute("CREATE TABLE build AS SELECT range % 2000 AS k FROM range(1000000)")
        con.execute("CREATE TABLE probe AS SELECT range % 4000 AS k FROM range(2000000)")
        con.execute(f"SET memory_limit = '{limit}'")
        found = con.execute("SELECT count(*) FROM probe WHERE k IN (SELECT k FROM build)")
        assert found.fetchall() == [(1_000_000,)]
