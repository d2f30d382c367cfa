"""Tests of ``hta-sql sql``: parameters, input, output, and the sandbox."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def in_new_process(*args: str | Path) -> list[str]:
    """Return the command line of a new Python process that runs hta-sql."""
    return [sys.executable, "-m", "hta_sql", *map(str, args)]


def test_sql_binds_values(cli: Cli, store: Path) -> None:
    """Parameter types are inferred, and values are bound instead of inserted into the SQL."""
    query = "SELECT $a AS a, $b AS b, $c AS c, $d AS d, typeof($a) AS t"
    values = [("a", "1"), ("b", "1.5"), ("c", "true"), ("d", "x'; DROP VIEW gpu_ops; --=")]
    options = [part for name, value in values for part in ("-p", f"{name}={value}")]
    done = cli("sql", store, query, *options, "--format", "json")
    assert json.loads(done.out) == [
        {"a": 1, "b": 1.5, "c": True, "d": "x'; DROP VIEW gpu_ops; --=", "t": "INTEGER"}
    ]


def test_sql_from_file_and_stdin(
    cli: Cli, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query can be an argument, a file or stdin."""
    file = tmp_path / "q.sql"
    file.write_text("-- how many\nSELECT count(*) AS n FROM gpu_ops;\n")
    assert cli("sql", store, "-f", file, "--format", "csv").out == "n\n6\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 7 AS n"))
    assert cli("sql", store, "-", "--format", "csv").out == "n\n7\n"
    cli("sql", store).fails(2, "Pass exactly one query")
    cli("sql", store, "SELECT 1", "-f", file).fails(2, "Pass exactly one query")
    cli("sql", store, " ").fails(2, "empty")
    cli("sql", store, "SELECT 1", "-p", "x").fails(2, "name=value")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md", "txt"])
def test_what_is_no_regular_file_is_written_into(
    cli: Cli, store: Path, tmp_path: Path, suffix: str
) -> None:
    """``-o`` writes into the target of a symlink, a pipe or a device instead of replacing it."""
    query = ("sql", store, "SELECT 1 AS one", "-o")
    target, link, pipe, full = (tmp_path / f"{n}.{suffix}" for n in ("at", "link", "pipe", "full"))
    link.symlink_to(target)
    os.mkfifo(pipe)
    full.symlink_to("/dev/full")
    assert cli(*query, link).code == 0
    assert link.is_symlink()
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        assert cli(*query, pipe).code == 0
        assert read.result() == target.read_bytes() != b""
    assert pipe.is_fifo()
    cli(*query, full).fails(1, "No space left on device")
    assert full.is_char_device()


def test_sql_limit_says_what_it_cuts(cli: Cli, store: Path) -> None:
    """A note says how many rows are omitted, on stderr for CSV and below a text table."""
    query = ("sql", store, "SELECT range AS n FROM range(100)")
    done = cli(*query, "--limit", "2", "--format", "csv")
    assert done.out == "n\n0\n1\n"
    assert done.err == "note: wrote 2 of 100 rows; --limit 0 writes all of them.\n"
    assert len(cli(*query, "--format", "csv").out.splitlines()) == 101
    assert "(40 of 100 rows; --limit 0" in cli(*query).out
    assert len(cli(*query, "--limit", "0").out.splitlines()) == 102


def test_sql_errors_are_the_engines(cli: Cli, store: Path) -> None:
    """DuckDB's error messages are printed with their caret and suggestion."""
    done = cli("sql", store, "SELEC 1")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        'error: Parser Error: syntax error at or near "SELEC"',
        "LINE 1: SELEC 1",
        "        ^^^^^",
    ]
    done = cli("sql", store, "FROM gpu_opz")
    assert (done.code, 'Did you mean "gpu_ops"?' in done.err) == (1, True)
    assert "Traceback" not in done.err


def test_a_query_before_its_store(cli: Cli, store: Path) -> None:
    """If the query precedes the store, the error suggests the command in the correct order."""
    swapped = f"hta-sql sql {store} 'SELECT 1'. See: "
    cli("sql", "SELECT 1", store).fails(2, "pass the store first", swapped)
    cli("sql", "SELECT 1", "FROM runs").fails(1, "No store at")


def attacks(store: Path, outside: Path) -> list[str]:
    """List queries that would write files or read outside the store."""
    inside = f"COPY (SELECT 1) TO '{store}/tables/stolen.csv'"
    hidden = f"WITH a AS ({inside}) SELECT count(*) FROM a"  # noqa: S608 - meant to be one
    return [
        inside,
        hidden,
        f"SELECT ({hidden})",
        f"SELECT 1 ORDER BY ({hidden})",
        f"SUMMARIZE {hidden}",
        f"SELECT * FROM range(({hidden}))",  # noqa: S608
        f"EXPLAIN ANALYZE {inside}",
        f"EXPLAIN (ANALYZE, FORMAT json) {inside}",
        f"EXPLAIN ANALYZE {hidden}",
        f"COPY (PIVOT gpu_ops ON class USING sum(dur)) TO '{store}/stolen.csv'",
        "FROM query('{}')".format(hidden.replace("'", "''")),
        "FROM json_execute_serialized_sql('{}')",
        f"EXPORT DATABASE '{store}/stolen'",
        f"COPY (SELECT 1) TO '{outside}/stolen.csv'",
        f"ATTACH '{outside}/stolen.duckdb' AS other",
        f"ATTACH '{store}/stolen.duckdb' AS other",
        "CREATE TABLE stolen AS SELECT 1",
        "DROP VIEW gpu_ops",
        "WITH x AS (INSERT INTO runs VALUES (1) RETURNING 1) FROM x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "CALL enable_logging('QueryLog')",
        "FROM enable_logging('QueryLog')",
        "FROM arrow_scan(1, 2, 3)",
        f"FROM read_text('{outside}/secret.csv')",
        f"FROM '{outside}/secret.csv'",
        f"FROM read_csv('{store}/../secret.csv')",
        f"FROM glob('{outside}/*')",
    ]


@pytest.mark.parametrize("every", [4, 1])
def test_sql_reads_the_store_and_nothing_else(
    every: int, cli: Cli, store: Path, tmp_path: Path
) -> None:
    """Writes, other files, extensions and settings are refused with an error."""
    (tmp_path / "secret.csv").write_text("secret\n42\n")
    before = sorted(store.rglob("*"))
    for query in attacks(store, tmp_path)[::every]:
        done = cli("sql", store, query)
        assert (query, done.code, done.out) == (query, 1, "")
        assert done.err.startswith("error: "), done.err
        assert "Traceback" not in done.err
    assert sorted(store.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_sql_allows_what_reads(cli: Cli, store: Path) -> None:
    """The sandbox allows all kinds of queries that only read the store."""
    for query in (
        "FROM temporal_breakdown",
        "FROM temporal_breakdown(ranks := [0])",
        "FROM lib.scoped_gpu_ops(NULL, NULL, NULL, false)",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) FROM n",
        "PIVOT gpu_ops ON class IN ('computation') USING sum(dur) GROUP BY rank",
        "SHOW TABLES",
        "DESCRIBE gpu_ops",
        "SUMMARIZE runs",
        "EXPLAIN ANALYZE SELECT count(*) FROM events",
        "VALUES (1), (2) ORDER BY 1",
    ):
        assert (query, cli("sql", store, query).code) == (query, 0)


def test_unsafe_lifts_the_sandbox(cli: Cli, store: Path, tmp_path: Path) -> None:
    """``--unsafe`` lifts the sandbox, but the store stays read-only."""
    # This runs in a separate process, because other tests have sandboxed the engine in this one.
    (tmp_path / "more.csv").write_text("more\n42\n")
    query = f"FROM read_csv('{tmp_path}/more.csv')"
    code = [*in_new_process("sql", store), query, "--unsafe", "--format", "csv"]
    done = subprocess.run(code, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.stdout, done.stderr) == ("more\n42\n", "")
    code = [*in_new_process("sql", store), "CREATE TABLE t AS SELECT 1", "--unsafe"]
    done = subprocess.run(code, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, "read-only mode" in done.stderr) == (1, True)
    cli("sql", store, query).fails(1, "Permission Error: Cannot access file")


def test_the_engines_messages_keep_their_layout(cli: Cli, store: Path) -> None:
    """A tab in DuckDB's error message is printed as a tab, not escaped."""
    done = cli("sql", store, "FROM temporal_breakdown(ranks := 0)")
    assert done.code == 1
    assert "\n    temporal_breakdown(runs VARCHAR[]" in done.err
    assert "\\t" not in done.err
