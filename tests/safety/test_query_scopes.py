"""The sandbox resolves the names of WITH queries exactly as the engine does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from hta_sql.errors import QueryError
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.query.sandbox import Sandbox
from tests.cookbook.job import ingest_cookbook
from tests.safety.scope_fuzz import fuzz

SETTINGS = "WITH pg_settings AS (SELECT 1)"

OUT_OF_SCOPE = [
    f"FROM ({SETTINGS} FROM pg_settings) x, pg_settings y",
    f"FROM pg_settings y, ({SETTINGS} FROM pg_settings) x",
    f"({SETTINGS} FROM pg_settings) UNION ALL (SELECT 2 FROM pg_settings)",
    f"SELECT ({SETTINGS} SELECT 1), (SELECT count(*) FROM pg_settings)",
    f"SELECT count(*) FROM pg_settings WHERE EXISTS ({SETTINGS} FROM pg_settings)",
    f"FROM (SELECT 1) t, LATERAL ({SETTINGS} FROM pg_settings) u, LATERAL (FROM pg_settings) w",
    f"EXPLAIN ANALYZE FROM ({SETTINGS} FROM pg_settings) x, pg_settings y",
    f"SUMMARIZE FROM ({SETTINGS} FROM pg_settings) x, pg_settings y",
    f"{SETTINGS} FROM pg_catalog.pg_settings",
    f"{SETTINGS} FROM system.pg_catalog.pg_settings",
    f"{SETTINGS} FROM (SHOW pg_settings)",
    "WITH threads AS (SELECT 1) FROM (SHOW threads)",
    "WITH a AS (FROM pg_settings), pg_settings AS (SELECT 1) FROM a",
    "WITH pg_settings AS (FROM pg_settings) FROM pg_settings",
    "WITH RECURSIVE pg_settings AS (FROM pg_settings) FROM pg_settings",
    "WITH RECURSIVE pg_settings(n) AS ((SELECT name FROM pg_settings) UNION SELECT 'a') FROM pg_settings",
    "WITH RECURSIVE pg_settings(n) AS (WITH q AS (FROM pg_settings) SELECT 'a' UNION FROM q) FROM pg_settings",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i FROM recurring.n) FROM n, recurring.n",
    "WITH n AS (SELECT 1) FROM recurring.n",
    "FROM (WITH duckdb_databases AS (SELECT 1) FROM duckdb_databases) x, duckdb_databases y",
    "FROM (WITH sqlite_master AS (SELECT 1) FROM sqlite_master) x, sqlite_master y",
    'WITH "duc\u212adb_databases" AS (SELECT 1) FROM duckdb_databases',
    "WITH \"secret.csv\" AS (SELECT 1) FROM 'secret.csv'",
    'FROM (WITH "/x/secret.csv" AS (SELECT 1) FROM "/x/secret.csv") x, \'/x/secret.csv\' y',
    "WITH \"secret.csv\" AS (SELECT 1) FROM query_table('secret.csv')",
    'WITH """pg_settings""" AS (SELECT 1) FROM query_table(\'"pg_settings"\')',
    f"FROM ({SETTINGS} FROM pg_settings) x, query_table('pg_settings') y",
    f"FROM ({SETTINGS} FROM pg_settings) x, query_table(['runs', 'pg_settings']) y",
    f"{SETTINGS} FROM query_table(pg_settings)",
    "FROM lib.compared_contents('/x/secret.csv', 'runs', false)",
    "FROM lib.compared_contents('runs', '/x/secret.csv', false)",
    "FROM lib.compared_contents(test_contents := '/x/secret.csv', control_contents := 'runs', renamed := true)",
    "FROM lib.compared_contents(['runs', 'pg_settings'], 'runs', false)",
    "FROM lib.compared_contents($a, 'runs', false)",
    "FROM lib.compared_contents('pg_' || 'settings', 'runs', false)",
    "FROM lib.compared_contents(pg_settings, 'runs', false)",
    "FROM lib._operator_work('pg_settings')",
    f"FROM ({SETTINGS} FROM lib._operator_work('pg_settings')) x, lib._operator_work('pg_settings') y",
]
"""Queries that use a WITH name outside its scope, where it means a view or a file."""

IN_SCOPE = [
    f"{SETTINGS} FROM pg_settings",
    f"{SETTINGS} FROM PG_Settings",
    f"{SETTINGS} SELECT (SELECT count(*) FROM pg_settings), * FROM range(1) LIMIT (SELECT count(*) FROM pg_settings)",
    f"{SETTINGS} FROM (WITH pg_settings AS (FROM pg_settings) FROM pg_settings) x, pg_settings y",
    f"{SETTINGS} (FROM pg_settings) UNION ALL (FROM pg_settings) ORDER BY 1",
    f"{SETTINGS}, b AS (FROM pg_settings) FROM b, LATERAL (FROM pg_settings)",
    f"{SETTINGS} FROM (DESCRIBE pg_settings)",
    f"{SETTINGS} FROM query_table('pg_settings')",
    f"{SETTINGS} FROM query_table(['pg_settings', 'pg_settings'])",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION (WITH q AS (FROM n) SELECT i FROM q)) FROM n",
    "WITH runs AS (SELECT 1) FROM runs, main.runs",
    "FROM (WITH runs AS (SELECT 1) FROM runs) x, runs y",
]
"""Queries that use the name of a WITH query within its scope."""


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a copy of the cookbook catalog in which any query runs that the check accepts."""
    path = ingest_cookbook(tmp_path_factory.mktemp("scoped"))
    materialize(path)
    copied = shutil.copy(Path(path) / "catalog.duckdb", tmp_path_factory.mktemp("open"))
    with duckdb.connect(copied, read_only=True) as opened:
        opened.execute("SET python_enable_replacements = false")
        yield opened


@pytest.fixture(scope="module")
def sandbox(con: duckdb.DuckDBPyConnection) -> Sandbox:
    """Return the sandbox for the copied catalog."""
    return Sandbox(con)


@pytest.mark.parametrize("query", OUT_OF_SCOPE, ids=range(len(OUT_OF_SCOPE)))
def test_a_name_is_unknown_out_of_its_scope(
    query: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """A WITH query is visible only in later queries of its WITH clause and in the main query."""
    with pytest.raises(QueryError, match=r"no table or analysis|computed"):
        sandbox.validated(con, query)


@pytest.mark.parametrize("query", IN_SCOPE, ids=range(len(IN_SCOPE)))
def test_a_name_is_known_in_its_scope(
    query: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """A WITH query is visible in its scope, even if a system view or a table has the same name."""
    assert con.execute(sandbox.validated(con, query)).fetchall()


@pytest.mark.parametrize("query", ["FROM passing('{}')", "FROM passing(rows := ['{}'])"])
def test_macros_that_pass_a_name_on_are_found(query: str) -> None:
    """Table names are checked even if they are passed through several macros."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE known AS SELECT 1 AS v")
        con.execute(
            'CREATE MACRO taking("The Rows", n) AS TABLE FROM query_table("The Rows") LIMIT n'
        )
        con.execute('CREATE MACRO passing(rows) AS TABLE FROM taking(n := 1, "The Rows" := rows)')
        con.execute("CREATE MACRO counted(n, rows) AS (SELECT count(*) + n FROM passing(rows))")
        con.execute("CREATE MACRO other(rows) AS TABLE SELECT rows FROM passing('known')")
        sandbox = Sandbox(con)
        for text in (
            "FROM other('pg_settings')",
            "SELECT counted(1, 'known')",
            query.format("known"),
        ):
            con.execute(sandbox.validated(con, text)).fetchall()
        for text in ("SELECT counted(1, 'pg_settings')", query.format("pg_settings")):
            con.execute(text).fetchall()  # without the check, the engine reads it
            with pytest.raises(QueryError, match="no table or analysis 'pg_settings'"):
                sandbox.validated(con, text)


@pytest.mark.parametrize(
    "count", [200, pytest.param(20_000, marks=pytest.mark.slow(reason="fuzz"))]
)
def test_queries_that_nest_scopes_at_random(
    count: int, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """Random queries are refused exactly if the generator expects it."""
    told = fuzz(con, sandbox, 600, count, 0)
    assert told["refused"] > count / 10
    assert told["passed"] > count / 2
