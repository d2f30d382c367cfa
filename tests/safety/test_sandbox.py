"""In the sandbox, a query of unknown origin can only read the store, however it is disguised."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.query.sandbox import Sandbox
from hta_sql.store.query.sandbox_functions import reading_functions
from hta_sql.store.query.trace_store import TraceStore
from tests.cookbook.job import ingest_cookbook
from tests.cookbook.test_cookbook import QUERIES
from tests.safety.escapes import BOMBS, BOUNDED, ESCAPES, ORDINARY
from tests.safety.sandbox_fuzz import fuzz


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the cookbook job, and open it as ``hta-sql sql`` does."""
    path = ingest_cookbook(tmp_path_factory.mktemp("sandboxed"))
    materialize(path)
    (path.parent / "secret.csv").write_text("secret\n42\n")
    with hta_sql.TraceStore(path, safe=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def con(
    store: TraceStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a copy of the catalog in which any query runs that the check accepts."""
    copied = shutil.copy(store.catalog_path, tmp_path_factory.mktemp("open"))
    with duckdb.connect(copied, read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox(con: duckdb.DuckDBPyConnection) -> Sandbox:
    """Return the sandbox for the copied catalog."""
    return Sandbox(con)


def addressed(query: str, store: TraceStore) -> str:
    """Replace the folder placeholders in a query."""
    folders = {"{outside}": store.path.parent, "{store}": store.path}
    for name, folder in folders.items():
        query = query.replace(name, str(folder))
    return query


@pytest.mark.parametrize("escape", sorted(ESCAPES), ids=ascii)
def test_escapes_are_refused(
    escape: str, store: TraceStore, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """The check refuses every escape before it runs."""
    with pytest.raises(QueryError):
        sandbox.validated(con, addressed(escape, store))


def test_escapes_leave_everything_as_it_was(store: TraceStore) -> None:
    """Running all escapes changes neither the files of the store nor those next to it."""

    def files() -> dict[Path, str]:
        found = [path for path in store.path.parent.rglob("*") if path.is_file()]
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    before = files()
    for escape in ESCAPES:
        with pytest.raises(QueryError):
            store.sql(addressed(escape, store))
    assert files() == before


def test_the_engine_stands_behind_the_check(store: TraceStore) -> None:
    """Even if a query passed the check by mistake, it could only open Parquet files."""
    with store._connection.opened().con.cursor() as con:
        for query in (
            "COPY (SELECT 1) TO '{store}/manifest.json' (FORMAT csv)",
            "FROM read_text('{store}/manifest.json')",
            "FROM read_text('{outside}/secret.csv')",
            "FROM read_text('{store}/tables/../../secret.csv')",
            "ATTACH '{outside}/stolen.duckdb' AS other",
        ):
            with pytest.raises(duckdb.PermissionException):
                con.execute(addressed(query, store))


@pytest.mark.parametrize("bomb", BOMBS, ids=ascii)
def test_gigabytes_out_of_a_number_are_refused(
    bomb: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """Functions that allocate gigabytes are refused, unless their size is known to be small."""
    with pytest.raises(QueryError, match="allowed here"):
        sandbox.validated(con, bomb)


def test_there_are_hundreds_of_them() -> None:
    """More than 400 escapes are tested."""
    assert len(ESCAPES) + len(BOMBS) > 400


@pytest.mark.parametrize("query", [*ORDINARY, *BOUNDED, *QUERIES.values()], ids=ascii)
def test_ordinary_questions_pass(query: str, store: TraceStore) -> None:
    """The sandbox does not affect ordinary queries."""
    store.sql(query)


def test_every_analysis_and_table_passes(con: duckdb.DuckDBPyConnection, sandbox: Sandbox) -> None:
    """All analyses and tables can be queried in the sandbox, in ns and in µs."""
    library = load_library()
    for about in (*library.tables, *library.analyses, *library.newest()):
        called = about.name if about in library.tables else f"{about.name}()"
        con.sql(sandbox.validated(con, f"FROM {called}"))
        con.sql(sandbox.validated(con, f"FROM us.{about.base_name}"))


@pytest.mark.parametrize(
    ("count", "asks"),
    [(200, False), pytest.param(4000, True, marks=pytest.mark.slow(reason="fuzz"))],
)
def test_queries_by_a_grammar(store: TraceStore, count: int, asks: bool) -> None:
    """Random queries with a forbidden part are refused; others pass or raise a library error."""
    told = fuzz(store, 600, count, 0, asks=asks)
    assert told["refused"] > count / 3
    assert told["passed"] > count / 5


def test_parameters_are_bound(store: TraceStore) -> None:
    """Parameters are bound, even in EXPLAIN, but they cannot name a relation."""
    assert store.sql("SELECT $a AS a", {"a": 1}).rows() == [(1,)]
    assert store.sql("SELECT ? AS a, ? AS b", [1, "x"]).rows() == [(1, "x")]
    assert len(store.sql("EXPLAIN SELECT $a AS a", {"a": 1})) == 1
    with pytest.raises(QueryError, match="computed"):
        store.sql("FROM query_table($a)", {"a": "runs"})


@pytest.mark.parametrize("query", ["SELECT 1 -- ;", "SELECT ';' AS a ;\n;", " SELECT 1 /* ; */ ; "])
def test_what_is_checked_is_what_runs(
    query: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """DuckDB's Python layer does not change the query that was checked."""
    checked = sandbox.validated(con, query)
    assert con.sql(checked).sql_query() == checked


def test_errors_say_what_is_near(store: TraceStore) -> None:
    """Errors for unknown names suggest similar ones, so a typo does not look like an attack."""
    with pytest.raises(QueryError, match=r"no table or analysis 'gpu_opz'. Did you mean 'gpu_ops'"):
        store.sql("FROM gpu_opz")
    with pytest.raises(QueryError, match=r"the function summ. Did you mean 'sum'"):
        store.sql("SELECT summ(1)")
    with pytest.raises(QueryError, match=r"temporal_breakdwn. Did you mean 'temporal_breakdown"):
        store.sql("FROM temporal_breakdwn(ranks := [0])")


def test_listed_functions_are_the_engines() -> None:
    """Each allowlisted function exists in the engine, so no function is allowed in advance."""
    with duckdb.connect() as con:
        rows = con.execute(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions()"
        ).fetchall()
    assert reading_functions() - {name for (name,) in rows} == set()
