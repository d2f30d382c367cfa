"""TraceStore(safe=True): a query of unknown origin reads the store, whatever it is dressed as."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.library.objects import load_library
from hta_sql.store.materialize import materialize
from hta_sql.store.sandbox import Sandbox, reading_functions
from hta_sql.store.trace_store import TraceStore
from tests.cookbook.job import ingest_cookbook
from tests.cookbook.test_cookbook import QUERIES

PLACES = ("{store}/manifest.json", "{store}/tables/stolen.csv", "{outside}/stolen.csv")

WRITING = [
    *(f"COPY (SELECT 1) TO '{place}' (FORMAT csv)" for place in PLACES),
    "COPY runs TO '{store}/tables' (FORMAT parquet, PARTITION_BY (run), OVERWRITE)",
    "COPY (PIVOT gpu_ops ON class USING sum(dur)) TO '{store}/stolen.csv'",
    "EXPORT DATABASE '{outside}/stolen'",
    "ATTACH '{outside}/stolen.duckdb' AS other",
    "ATTACH ':memory:' AS other",
    "CREATE TABLE stolen AS SELECT 1",
    "CREATE TEMP TABLE stolen AS SELECT 1",
    "CREATE TEMP VIEW gpu_ops AS SELECT 1 AS dur",
    "CREATE OR REPLACE TEMP MACRO temporal_breakdown() AS TABLE SELECT 1",
    "CREATE TEMP SEQUENCE stolen",
    "CREATE SECRET stolen (TYPE s3)",
    "DROP VIEW gpu_ops",
    "ALTER VIEW gpu_ops RENAME TO stolen",
    "INSERT INTO runs VALUES (1)",
    "UPDATE runs SET run = 'stolen'",
    "DELETE FROM runs",
    "MERGE INTO runs USING ranks ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE runs",
    "COMMENT ON VIEW gpu_ops IS 'stolen'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET VARIABLE stolen = 1",
    "RESET enable_external_access",
    "PRAGMA enable_verification",
    "PRAGMA database_list",
    "CALL enable_logging('QueryLog')",
    "PREPARE stolen AS SELECT 1",
    "EXECUTE stolen",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "USE memory",
]
"""Statements that are no SELECT."""

READING = [
    "read_csv('{outside}/secret.csv')",
    "read_csv_auto(['{outside}/secret.csv'])",
    "read_text('{outside}/secret.csv')",
    "read_blob('{store}/manifest.json')",
    "read_json('{store}/manifest.json')",
    "read_parquet('{store}/tables/*/*/*/*.parquet')",
    "parquet_scan('{store}/tables/*/*/*/*.parquet')",
    "parquet_metadata('{store}/tables/*/*/*/*.parquet')",
    "parquet_kv_metadata('{store}/tables/*/*/*/*.parquet')",
    "read_duckdb('{store}/catalog.duckdb')",
    "sniff_csv('{outside}/secret.csv')",
    "glob('{outside}/*')",
    "glob('{store}/*')",
    "'{outside}/secret.csv'",
    '"{outside}/secret.csv"',
    "'{store}/manifest.json'",
    "main.'{outside}/secret.csv'",
    "query('FROM runs')",
    "query_table('{outside}/secret.csv')",
    "query_table(['runs', '{outside}/secret.csv'])",
    "query_table('secret' || '.csv')",
    "lib.merged_intervals('{outside}/secret.csv')",
    "lib.merged_intervals(spans := concat('{outside}/', 'secret.csv'))",
    "histogram('{outside}/secret.csv', 1)",
    "json_execute_serialized_sql('[]')",
    "arrow_scan(1, 2, 3)",
    "pandas_scan(1)",
    "python_map_function(1)",
    "seq_scan('runs')",
    "duckdb_secrets()",
    "duckdb_settings()",
    "duckdb_logs()",
    "duckdb_logs_parsed('QueryLog')",
    "duckdb_settings",
    "pg_catalog.pg_settings",
    "pragma_table_info('runs')",
    "pragma_database_size()",
    "enable_logging('QueryLog')",
    "checkpoint()",
    "test_all_types()",
    "system.main.duckdb_secrets()",
    "temp.main.gpu_ops",
]
"""What stands behind FROM and is not the store's."""

CALLING = [
    "getenv('HOME')",
    "'HOME'.getenv()",
    "current_setting('memory_limit')",
    "system.main.current_setting('memory_limit')",
    "getvariable('x')",
    "nextval('x')",
    "setseed(0.5)",
    "write_log('x')",
    "sleep_ms(1)",
    "json_serialize_plan('FROM runs')",
    "list_aggregate([1], 'sum')",
    "current_query()",
    "finalize('x')",
    "invoke(lambda x: x, 1)",
    "no_such_function(1)",
    "(lambda x: x).current_setting()",
]
"""Functions that do more than compute from their arguments."""

DRESSED = [
    "{}",
    " ;; {} ;; ",
    "-- SELECT 1\n{}",
    "/* ' /* \" */ SELECT */ {} -- ;",
    "EXPLAIN {}",
    "EXPLAIN ANALYZE {}",
    "EXPLAIN (ANALYZE, FORMAT json) {}",
    "explain /* -- */ analyze -- (\n {}",
    "EXPLAIN (ANALYZE --) SELECT 1 /*\n) {} --*/",
    "EXPLAIN /* ( */ (ANALYZE /* ) SELECT 1 */ ) {}",
    "EXPLAIN ($$) SELECT 1 $$) {}",
    "SELECT 1; {}",
    "{}; SELECT 1",
    "EXPLAIN SELECT 1; {}",
    "SELECT 1 \0; {}",
    "DESCRIBE {}",
    "SUMMARIZE {}",
    "WITH a AS ({}) SELECT count(*) FROM a",
    "WITH a AS MATERIALIZED ({}) FROM runs",
    "SELECT (WITH a AS ({}) SELECT count(*) FROM a)",
    "SELECT 1 ORDER BY (WITH a AS ({}) SELECT count(*) FROM a)",
    "EXPLAIN ANALYZE WITH a AS ({}) FROM a",
    "SUMMARIZE WITH a AS ({}) FROM a",
    "FROM range((WITH a AS ({}) SELECT count(*) FROM a))",
    "FROM ({})",
    "PREPARE x AS {}",
    "CREATE TEMP VIEW x AS {}",
]
"""Ways to hide a statement."""

SELECTED = [
    "FROM {}",
    "TABLE {}",
    "DESCRIBE FROM {}",
    "SUMMARIZE FROM {}",
    "SUMMARIZE {}",
    "EXPLAIN ANALYZE FROM {}",
    "SELECT (SELECT count(*) FROM {})",
    "SELECT 1 WHERE EXISTS (FROM {})",
    "SELECT [x FOR x IN ARRAY(SELECT 1 FROM {})]",
    "FROM runs, LATERAL (FROM {})",
    "FROM runs ASOF JOIN {} AS s ON true",
    "FROM runs UNION ALL BY NAME FROM {}",
    "WITH RECURSIVE a AS (SELECT 1 UNION ALL FROM {}) FROM a",
    'WITH "secret.csv" AS (SELECT 1) FROM {}',
    "PIVOT {} ON a IN (1) USING count(*)",
    "UNPIVOT (FROM {}) ON COLUMNS(*)",
    "FROM runs LIMIT (SELECT count(*) FROM {})",
]
"""Ways to read from something."""

COMPUTED = [
    "SELECT {}",
    "VALUES ({})",
    "FROM range(len({}::VARCHAR))",
    "SELECT sum({}) OVER ()",
    "SELECT count(*) FILTER ({} IS NULL)",
    "SELECT list_transform([1], lambda x: {})",
    "SELECT CASE WHEN true THEN {} END",
    "FROM runs ORDER BY {}",
    "SELECT 1 GROUP BY {}",
    "SELECT 1 LIMIT {}",
    "EXPLAIN ANALYZE SELECT {}",
    "DESCRIBE SELECT {}",
    "FROM runs AT (TIMESTAMP => {})",
    "SELECT {'a': {}}.a",
]
"""Places for an expression."""

ESCAPES = {
    *(dress.replace("{}", statement) for dress, statement in product(DRESSED, WRITING[:1])),
    *(dress.replace("{}", statement) for dress, statement in product(DRESSED[:6], WRITING)),
    *(place.replace("{}", source) for place, source in product(SELECTED, READING[:3])),
    *(place.replace("{}", source) for place, source in product(SELECTED[:1], READING)),
    *(place.replace("{}", call) for place, call in product(COMPUTED, CALLING[:3])),
    *(place.replace("{}", call) for place, call in product(COMPUTED[:1], CALLING)),
    "CREATE TEMP VIEW gpu_ops AS SELECT 1 AS dur; FROM gpu_ops",
    "WITH x AS (INSERT INTO runs VALUES (1) RETURNING 1) FROM x",
    "WITH x AS (DELETE FROM runs RETURNING 1) FROM x",
    "SELECT 1 \ud800",
    "",
    ";",
    "-- nothing",
    "PIVOT gpu_ops ON class USING sum(dur)",
    "SHOW secrets",
    "SHOW '{outside}/secret.csv'",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
}

ORDINARY = [
    "FROM temporal_breakdown(ranks := [0])",
    "FROM main.temporal_breakdown_v1(runs := ['before'])",
    "FROM us.gpu_ops SELECT ts_us LIMIT 3",
    "FROM stored.gpu_ops LIMIT 1",
    "FROM catalog.main.gpu_ops LIMIT 1",
    "FROM lib.scoped_gpu_ops(NULL, NULL, NULL, false)",
    "WITH spans AS (SELECT rank AS lane, ts, dur FROM gpu_ops) FROM lib.merged_intervals('spans')",
    "WITH \"my spans\" AS (SELECT rank AS lane, ts, dur FROM gpu_ops) FROM lib.gaps('my spans')",
    "FROM query_table('gpu_ops') SELECT count(*)",
    "FROM query_table(['cpu_ops', 'gpu_ops'], true) SELECT count(*)",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) FROM n",
    "WITH RECURSIVE n(i) USING KEY (i) AS (SELECT 1 UNION SELECT i FROM recurring.n) FROM n",
    "PIVOT gpu_ops ON class IN ('computation') USING sum(dur) GROUP BY rank",
    "FROM (FROM gpu_ops SELECT rank, class, dur) PIVOT (sum(dur) FOR class IN ('computation'))",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b INTO NAME n VALUE v",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SHOW gpu_ops",
    "DESCRIBE gpu_ops",
    "DESCRIBE FROM temporal_breakdown",
    "SUMMARIZE runs",
    "SUMMARIZE SELECT dur FROM gpu_ops",
    "EXPLAIN SELECT count(*) FROM events",
    "EXPLAIN ANALYZE SELECT count(*) FROM events",
    "EXPLAIN (ANALYZE) FROM temporal_breakdown",
    "EXPLAIN (FORMAT json) (SELECT 1) UNION (SELECT 2)",
    "-- how long\nEXPLAIN /* really */ ANALYZE SELECT 'é' AS \"naïve\", count(*) FROM gpu_ops; -- so",
    "VALUES (1), (2) ORDER BY 1",
    "TABLE runs;",
    "SELECT DISTINCT ON (rank) rank, name FROM gpu_ops ORDER BY rank, dur DESC",
    "SELECT name, sum(dur) AS total FROM gpu_ops GROUP BY ALL HAVING total > 0 ORDER BY ALL LIMIT 10%",
    "SELECT rank, row_number() OVER w, lag(ts, 1) OVER w FROM gpu_ops WINDOW w AS (PARTITION BY rank ORDER BY ts)",
    "FROM gpu_ops QUALIFY row_number() OVER (PARTITION BY rank ORDER BY dur DESC) = 1",
    "FROM gpu_ops AS g ASOF JOIN steps AS s ON g.rank = s.rank AND g.ts >= s.ts SELECT count(*)",
    "FROM gpu_ops SEMI JOIN ranks USING (rank) SELECT quantile_cont(dur, [0.5, 0.99])",
    "SELECT rank, class, grouping(class), sum(dur) FROM gpu_ops GROUP BY ROLLUP (rank, class)",
    "SELECT count(*) FILTER (class = 'memory'), max_by(name, dur), histogram(stream) FROM gpu_ops",
    "SELECT list_transform([1, 2], lambda x: x + 1), [y FOR y IN [1, 2] IF y > 1], {'a': 1}.a, MAP {1: 2}",
    "SELECT 'a'.upper(), 'abc'[1:2], 'a' LIKE '%a', '1'::INT, TRY_CAST('x' AS INT), DATE '2020-01-01' + 1",
    "SELECT args->>'$.x', json_extract(args, '$.y') FROM event_args LIMIT 1",
    "SELECT unnest([1, 2]), generate_subscripts([1, 2], 1), * FROM range(2)",
    "SELECT * EXCLUDE (name), COLUMNS('dur') FROM gpu_ops LIMIT 1",
    "SELECT now() > TIMESTAMP '2020-01-01', current_date, extract('year' FROM today()), random() < 2",
    "SELECT CASE WHEN EXISTS (FROM runs) THEN 1 ELSE 0 END, 1 IN (1, 2), 2 BETWEEN 1 AND 3, coalesce(NULL, 1)",
    "FROM gpu_ops USING SAMPLE 3 ROWS",
    "SELECT name FROM duckdb_columns() AS c(name) LIMIT 1",
    "FROM information_schema.tables",
    "FROM duckdb_views",
    "FROM analyses",
    "SELECT name COLLATE NOCASE AS name FROM gpu_ops INTERSECT SELECT name FROM gpu_ops",
    "SELECT regexp_extract(name, '(\\w+)', 1), format('{}', 1), printf('%d', 1), md5(name) FROM gpu_ops",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """The job of the cookbook, opened as ``hta-sql sql`` does."""
    path = ingest_cookbook(tmp_path_factory.mktemp("sandboxed"))
    materialize(path)
    (path.parent / "secret.csv").write_text("secret\n42\n")
    with hta_sql.TraceStore(path, safe=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def con(
    store: TraceStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Its catalog, not locked: what the check lets through would run."""
    copied = shutil.copy(store.catalog_path, tmp_path_factory.mktemp("open"))
    with duckdb.connect(copied, read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox(con: duckdb.DuckDBPyConnection) -> Sandbox:
    """What knows the objects of that catalog."""
    return Sandbox(con)


def addressed(query: str, store: TraceStore) -> str:
    """Put the folders in."""
    folders = {"{outside}": store.path.parent, "{store}": store.path}
    for name, folder in folders.items():
        query = query.replace(name, str(folder))
    return query


@pytest.mark.parametrize("escape", sorted(ESCAPES), ids=ascii)
def test_escapes_are_refused(
    escape: str, store: TraceStore, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """By the check, before anything runs."""
    with pytest.raises(QueryError):
        sandbox.checked(con, addressed(escape, store))


@pytest.mark.slow
def test_escapes_leave_everything_as_it_was(store: TraceStore) -> None:
    """All of them at a store, whose files and those beside it stay what they are."""

    def files() -> dict[Path, str]:
        found = [path for path in store.path.parent.rglob("*") if path.is_file()]
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    before = files()
    for escape in ESCAPES:
        with pytest.raises(QueryError):
            store.sql(addressed(escape, store))
    assert files() == before


def test_the_engine_stands_behind_the_check(store: TraceStore) -> None:
    """What a check that had a hole would let through finds every file but the Parquet closed."""
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


@pytest.mark.parametrize("query", [*ORDINARY, *QUERIES.values()], ids=ascii)
def test_ordinary_questions_pass(query: str, store: TraceStore) -> None:
    """The sandbox is in nobody's way."""
    store.sql(query)


@pytest.mark.slow
def test_every_analysis_and_table_passes(con: duckdb.DuckDBPyConnection, sandbox: Sandbox) -> None:
    """By their names, with and without version, in ns and in microseconds."""
    library = load_library()
    for about in (*library.tables, *library.analyses, *library.newest()):
        called = about.name if about in library.tables else f"{about.name}()"
        con.sql(sandbox.checked(con, f"FROM {called}"))
        con.sql(sandbox.checked(con, f"FROM us.{about.base_name}"))


def test_parameters_are_bound(store: TraceStore) -> None:
    """Also in what is explained; as a name of a relation they are refused."""
    assert store.sql("SELECT $a AS a", {"a": 1}).rows() == [(1,)]
    assert store.sql("SELECT ? AS a, ? AS b", [1, "x"]).rows() == [(1, "x")]
    assert len(store.sql("EXPLAIN SELECT $a AS a", {"a": 1})) == 1
    with pytest.raises(QueryError, match="computed"):
        store.sql("FROM query_table($a)", {"a": "runs"})


@pytest.mark.parametrize("query", ["SELECT 1 -- ;", "SELECT ';' AS a ;\n;", " SELECT 1 /* ; */ ; "])
def test_what_is_checked_is_what_runs(
    query: str, con: duckdb.DuckDBPyConnection, sandbox: Sandbox
) -> None:
    """The Python layer changes nothing in the text that was checked."""
    checked = sandbox.checked(con, query)
    assert con.sql(checked).sql_query() == checked


def test_errors_say_what_is_near(store: TraceStore) -> None:
    """A slip of the pen is told from an attack."""
    with pytest.raises(QueryError, match=r"no table or analysis 'gpu_opz'. Did you mean 'gpu_ops'"):
        store.sql("FROM gpu_opz")
    with pytest.raises(QueryError, match=r"the function summ. Did you mean 'sum'"):
        store.sql("SELECT summ(1)")
    with pytest.raises(QueryError, match=r"temporal_breakdwn. Did you mean 'temporal_breakdown"):
        store.sql("FROM temporal_breakdwn(ranks := [0])")


def test_listed_functions_are_the_engines() -> None:
    """A list of names that exist nowhere would allow whatever takes such a name later."""
    with duckdb.connect() as con:
        rows = con.execute(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions()"
        ).fetchall()
    assert reading_functions() - {name for (name,) in rows} == set()
