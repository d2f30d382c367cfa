"""The definition of a staged table comes from the current database."""

from __future__ import annotations

import duckdb

from hta_sql.library.sql_files import ingest_sql


def test_a_definition_is_that_of_the_own_rank() -> None:
    """A table of the same name in an attached database is ignored."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE staged_steps (own BIGINT)")
        con.execute("ATTACH ':memory:' AS another")
        con.execute("CREATE TABLE another.staged_steps (other BIGINT)")
        named = {"table_name": "staged_steps"}
        found = con.execute(ingest_sql("staged", "table_definition"), named).fetchall()
    assert found == [("CREATE TABLE staged_steps(own BIGINT);",)]
