"""The sandbox refuses queries that would crash the process or block the check itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.query.sandbox import Sandbox
from hta_sql.store.query.sandbox_functions import READING_TYPES, reading_functions
from hta_sql.store.query.trace_store import TraceStore
from tests.cookbook.job import ingest_cookbook
from tests.safety.oversized import BROKEN, COPYING, DEEP, LARGE_BUT_ORDINARY, NESTED, RECURSING

MOST_S = 0.5
"""Maximum CPU time to refuse a query [s]."""

SMALL_STACK = """
import json, sys, threading, duckdb
queries = json.load(sys.stdin)
con = duckdb.connect(sys.argv[1], read_only=True, config={"threads": 1})
def run():
    for query in queries:
        print(query[:300], flush=True)
        try:
            con.execute(query).fetchall()
        except duckdb.Error:
            pass
threading.stack_size(int(sys.argv[2]) << 10)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the cookbook job, and open it as ``hta-sql sql`` does."""
    path = ingest_cookbook(tmp_path_factory.mktemp("bounded"))
    materialize(path)
    with hta_sql.TraceStore(path, safe=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def catalog(store: TraceStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the catalog of the store."""
    return Path(shutil.copy(store.catalog_path, tmp_path_factory.mktemp("open")))


@pytest.fixture(scope="module")
def con(catalog: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the copied catalog without the sandbox's restrictions."""
    with duckdb.connect(catalog, read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox(con: duckdb.DuckDBPyConnection) -> Sandbox:
    """Return the sandbox for the copied catalog."""
    return Sandbox(con)


def refuse_in_time(con: duckdb.DuckDBPyConnection, sandbox: Sandbox, query: str) -> None:
    """Assert that a query is refused within the maximum time."""
    before = time.thread_time()
    with pytest.raises(QueryError):
        sandbox.validated(con, query)
    assert time.thread_time() - before < MOST_S


@pytest.mark.parametrize("count", [1_200, 8_000, 100_000])
@pytest.mark.parametrize("what", NESTED)
def test_what_is_nested_too_deeply_is_refused_quickly(
    what: str, count: int, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """Queries that nest too deeply are refused quickly, before the engine runs them."""
    if count > 8_000 or what not in ("columns", "constants", "a long text", "a long comment"):
        refuse_in_time(con, sandbox, NESTED[what](count))


@pytest.mark.parametrize("count", [50, 1_200, 8_000, 100_000])
@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_query_is_refused_quickly(
    what: str, count: int, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """An invalid query is refused quickly, even if the engine's parser would backtrack for long."""
    refuse_in_time(con, sandbox, BROKEN[what](count))


@pytest.mark.parametrize("what", COPYING)
def test_what_the_engine_copies_is_refused_quickly(
    what: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """Nested constructs that the engine would copy at each level are refused quickly."""
    refuse_in_time(con, sandbox, COPYING[what](25))
    refuse_in_time(con, sandbox, f"EXPLAIN {COPYING[what](25)}")


@pytest.mark.parametrize("query", RECURSING, ids=range(len(RECURSING)))
def test_functions_that_recurse_into_values_are_refused(
    query: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """Functions that recurse into values are refused, because a value may be deeply nested."""
    refuse_in_time(con, sandbox, query)


@pytest.mark.parametrize("query", LARGE_BUT_ORDINARY, ids=range(len(LARGE_BUT_ORDINARY)))
def test_large_queries_pass(query: str, store: TraceStore) -> None:
    """Large queries with long lists, chains and unions, as programs write them, pass the check."""
    store.sql(query)


def test_the_check_of_an_ordinary_query_is_quick(
    con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """The check of an ordinary query takes less than 20 ms."""
    query = "SELECT name, sum(dur) FROM gpu_ops WHERE rank = 0 GROUP BY ALL ORDER BY 2 DESC LIMIT 5"
    sandbox.validated(con, query)
    before = time.thread_time()
    for _ in range(20):
        sandbox.validated(con, query)
    assert (time.thread_time() - before) / 20 < 0.02


def survive(catalog: Path, queries: list[str], stack_kib: int) -> None:
    """Run queries in a separate process, on a thread with the given stack size."""
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", SMALL_STACK, str(catalog), str(stack_kib)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-400:] + done.stderr[-400:]


def test_what_passes_runs_on_an_eighth_of_a_stack(
    catalog: Path, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """The deepest query of each kind that passes the check runs on a stack of 1 MiB."""
    queries = []
    for what, write in NESTED.items():
        for count in (195, 95, 58, 49, 40, 30, 20, 9, 5):
            try:
                queries.append(sandbox.validated(con, write(count)))
            except QueryError:
                continue
            break
        else:
            pytest.fail(f"{what} does not pass five times")
    survive(catalog, queries, 1024)


def test_no_listed_function_recurses_into_a_value(catalog: Path) -> None:
    """Allowed functions and casts do not crash on values with 100,000 levels."""
    values = [
        DEEP,
        """repeat('{"a":', 100000) || '1' || repeat('}', 100000)""",
        "repeat('[', 100000)",
    ]
    of_json = [f for f in reading_functions() if "json" in f and f != "json_pretty"]  # 20 GB
    structured = {"from_json", "from_json_strict", "json_transform", "json_transform_strict"}
    arguments = ["{0}, '$.a'", "{0}, {0}", "'{{}}', {0}", "{0}, '$', {0}", "({0})::JSON, '$.*'"]
    named = sorted(f for f in reading_functions() if f.isidentifier() and f != "json_pretty")
    queries = [
        *(f"SELECT length(({f}({v}))::VARCHAR)" for f, v in product(named, values)),
        *(
            f"SELECT length(({f}({a.format(v)}))::VARCHAR)"
            for f, v, a in product(sorted({*of_json} - structured), values, arguments)
        ),
        *(
            f"SELECT length(({f}({v}, '{json.dumps(['JSON'])}'))::VARCHAR)"
            for f, v in product(sorted(structured), values)
        ),
        *(
            f"SELECT length(TRY_CAST(({v})::{first} AS {name})::VARCHAR)"
            for v in values
            for first in ("VARCHAR", "JSON")
            for name in ("JSON", "JSON[]", "INT[][]", "STRUCT(a JSON)", "MAP(VARCHAR, JSON)")
        ),
    ]
    survive(catalog, queries, 8192)


def test_listed_types_are_the_engines() -> None:
    """Each allowlisted type exists in the engine, so no type of a future version is allowed yet."""
    with duckdb.connect() as con:
        rows = con.execute("SELECT DISTINCT lower(type_name) FROM duckdb_types()").fetchall()
    assert READING_TYPES - {name for (name,) in rows} == set()
