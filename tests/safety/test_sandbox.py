"""A query of unknown origin reads the store's tables and nothing else, however it is disguised."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import duckdb
import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.query.limits import Limits
from hta_sql.store.query.trace_store import TraceStore
from tests.cookbook.job import ingest_cookbook
from tests.cookbook.test_cookbook import QUERIES
from tests.safety.escapes import BOMBS, BOUNDED, ESCAPES, ORDINARY
from tests.safety.function_calls import TABLE_LIKE, calls, functions_of
from tests.safety.planted import VARIABLE, WORD, Planted, tell

CALLS = 2_500
"""Number of calls of functions that are tried at each change."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    """Ingest the cookbook job, and plant files that no query may read."""
    path = ingest_cookbook(tmp_path_factory.mktemp("sandboxed"))
    materialize(path)
    found = Planted.around(path)
    with found.server:
        yield found


@pytest.fixture(scope="module")
def store(planted: Planted) -> Iterator[TraceStore]:
    """Open the store safely, with a planted word in the environment of its workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, VARIABLE, WORD)
        limits = Limits(seconds=5, rows=None)  # without a limit of rows, queries run as they are
        with hta_sql.TraceStore(
            planted.store, safe=True, memory_limit="1GiB", limits=limits
        ) as opened:
            yield opened


def check_harmless(store: TraceStore, planted: Planted, queries: list[str]) -> list[str]:
    """Assert that queries read, write and reach nothing; return those that were answered."""
    before, answered = planted.files(), []
    for query in queries:
        ran, told = tell(store, query)
        assert WORD not in told, query
        if ran:
            answered.append(query)
    assert planted.files() == before
    assert not planted.is_connected()
    return answered


def test_escapes_read_and_write_nothing(store: TraceStore, planted: Planted) -> None:
    """Disguised writes, and reads of other files, change no file and show no content."""
    queries = [planted.addressed(query) for query in sorted(ESCAPES)]
    answered = check_harmless(store, planted, queries)
    assert len(queries) > 400
    assert [query for query in answered if "COPY" in query or "secret.csv" in query] == []


@pytest.mark.parametrize(
    "count", [CALLS, pytest.param(None, marks=pytest.mark.slow(reason="fuzz"))]
)
def test_no_function_reads_or_writes_anything_else(
    count: int | None, store: TraceStore, planted: Planted
) -> None:
    """No function of the engine or the library reaches a file, a URL or the environment."""
    paths = planted.paths()
    with store._connection.opened().con.cursor() as con:
        functions = [found for found in functions_of(con) if found.takes_texts]
    queries = sorted(
        {
            query
            for found in functions
            for query in calls(found, paths if found.kind in TABLE_LIKE else paths[::5])
        }
    )
    if count is not None:
        queries = random.Random(7).sample(queries, count)
    answered = check_harmless(store, planted, queries)
    assert len(answered) > len(queries) / 20


def test_settings_and_paths_are_visible(store: TraceStore) -> None:
    """A query may see the engine's settings and the store's paths, which SECURITY.md says."""
    ((folders,),) = store.sql("SELECT current_setting('allowed_directories')").rows()
    assert str(store.path) in str(folders)


def test_the_engine_is_locked(store: TraceStore, planted: Planted) -> None:
    """The engine opens no file of the store but its tables, and attaches no other database."""
    with store._connection.opened().con.cursor() as con:
        for query in (
            "COPY (SELECT 1) TO '{store}/manifest.json' (FORMAT csv)",
            "FROM read_text('{store}/manifest.json')",
            "FROM read_text('{outside}/secret.csv')",
            "FROM read_text('{store}/tables/../secret.csv')",
            "ATTACH '{outside}/secret.duckdb' AS other",
        ):
            with pytest.raises(duckdb.PermissionException):
                con.execute(planted.addressed(query))


@pytest.mark.parametrize("bomb", BOMBS, ids=ascii)
def test_gigabytes_out_of_a_number_cost_the_worker_at_most(bomb: str, store: TraceStore) -> None:
    """A function that allocates gigabytes ends with an error or an answer; the store goes on."""
    tell(store, bomb)
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]


@pytest.mark.parametrize("query", [*ORDINARY, *BOUNDED, *QUERIES.values()], ids=ascii)
def test_ordinary_questions_pass(query: str, store: TraceStore) -> None:
    """The sandbox does not affect ordinary queries."""
    store.sql(query)


def test_every_analysis_and_table_passes(store: TraceStore) -> None:
    """All analyses and tables can be queried in the sandbox, in ns and in µs."""
    library = load_library()
    for about in (*library.tables, *library.newest()):
        called = about.name if about in library.tables else f"{about.name}()"
        store.sql(f"DESCRIBE FROM {called}")
        store.sql(f"DESCRIBE FROM us.{about.base_name}")


def test_parameters_are_bound(store: TraceStore) -> None:
    """Parameters are bound, even in EXPLAIN."""
    assert store.sql("SELECT $a AS a", {"a": 1}).rows() == [(1,)]
    assert store.sql("SELECT ? AS a, ? AS b", [1, "x"]).rows() == [(1, "x")]
    assert len(store.sql("EXPLAIN SELECT $a AS a", {"a": 1})) == 1
    assert store.sql("SELECT $a AS a", {"a": "1) FROM runs --"}).rows() == [("1) FROM runs --",)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1 -- ;", [(1,)]),
        ("SELECT ';' AS a ;\n;", [(";",)]),
        (" SELECT 1 /* ; */ ; -- ;", [(1,)]),
        (";; SELECT 1 ;;", [(1,)]),
        ("SELECT range FROM range(3) ORDER BY range DESC", [(2,), (1,), (0,)]),
    ],
)
def test_comments_semicolons_and_orders_are_kept(
    query: str, rows: list[tuple[object, ...]], store: TraceStore
) -> None:
    """A query that runs as a subquery returns the same rows in the same order."""
    assert store.sql(query).rows() == rows


def test_errors_say_what_is_near(store: TraceStore) -> None:
    """Errors for unknown names suggest similar ones, and a refused statement is named."""
    for query, message in {
        "FROM gpu_opz": 'Did you mean "gpu_ops"',
        "SELECT summ(1)": 'Did you mean "sum"',
        "DROP VIEW gpu_ops": "Only read-only queries are allowed here, not DROP",
        "EXPLAIN ANALYZE COPY runs TO 'x'": "here, not COPY",
        "SELECT 1; SELECT 2": "Pass a single statement: this query has 2",
        "PIVOT gpu_ops ON class USING sum(dur)": "List them: ON x IN",
    }.items():
        with pytest.raises(QueryError, match=message):
            store.sql(query)
