"""Engine behavior that the project relies on, and that some DuckDB versions have broken."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest


@pytest.mark.parametrize("limit", ["20MB", "30MB"])
def test_a_join_that_spills_loses_no_row(limit: str, tmp_path: Path) -> None:
    """A filter built from the rows in memory must not apply to spilled rows (duckdb/duckdb#25702)."""
    with duckdb.connect(str(tmp_path / "spill.duckdb"), config={"threads": 1}) as con:
        con.execute("CREATE TABLE build AS SELECT range % 2000 AS k FROM range(1000000)")
        con.execute("CREATE TABLE probe AS SELECT range % 4000 AS k FROM range(2000000)")
        con.execute(f"SET memory_limit = '{limit}'")
        found = con.execute("SELECT count(*) FROM probe WHERE k IN (SELECT k FROM build)")
        assert found.fetchall() == [(1_000_000,)]
