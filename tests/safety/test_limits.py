"""Limits on time, rows, memory and spilled data for queries of unknown origin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.machine import size_of
from hta_sql.store.query.limits import Limits

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000)"
DOUBLED = (
    "WITH RECURSIVE r AS (SELECT 'x' AS s, 1 AS n UNION ALL SELECT s || s, n + 1 FROM r WHERE n < 40) "
    "SELECT max(length(s)) FROM r"
)
LARGE = (
    "SELECT max(i) FROM (SELECT i FROM range(40000000) AS t(i) ORDER BY hash(i), i LIMIT 39999999)"
)


def test_a_question_that_takes_too_long(tiny_store: hta_sql.TraceStore) -> None:
    """A query that exceeds its time limit is interrupted, and the next query succeeds."""
    with hta_sql.TraceStore(tiny_store.path, safe=True, limits=Limits(seconds=0.2)) as store:
        started = time.monotonic()
        with pytest.raises(QueryError, match=r"Interrupted after 0.2 s.*--timeout"):
            store.sql(ENDLESS)
        assert time.monotonic() - started < 20
        assert store.sql("SELECT 1 AS a").rows() == [(1,)]


def test_an_answer_with_too_many_rows(tiny_store: hta_sql.TraceStore) -> None:
    """A result with too many rows is refused, because a truncated result would look complete."""
    with hta_sql.TraceStore(tiny_store.path, safe=True, limits=Limits(rows=3)) as store:
        assert len(store.sql("FROM range(3)")) == 3
        with pytest.raises(QueryError, match=r"more than 3 rows.*--max-rows"):
            store.sql("FROM range(4)")


def test_there_are_limits_by_default(tiny_store: hta_sql.TraceStore) -> None:
    """A safe store has limits by default."""
    with hta_sql.TraceStore(tiny_store.path, safe=True) as store:
        assert store._options["limits"] == Limits(600.0, 10_000_000, "10GiB")
        assert store.sql("SELECT 1 AS a").rows() == [(1,)]


def test_what_does_not_fit_is_put_beside_no_store(
    tiny_store: hta_sql.TraceStore, tmp_path: Path
) -> None:
    """A query that exceeds its memory and spill limits fails without writing to the store."""
    copied = shutil.copytree(tiny_store.path, tmp_path / "job.store")
    hta_sql.open(copied).close()
    before = set(copied.rglob("*"))
    small = Limits(spill="1MiB")
    with (
        hta_sql.TraceStore(copied, memory_limit="60MB", safe=True, limits=small) as store,
        pytest.raises(QueryError, match="Out of Memory"),
    ):
        store.sql(LARGE)
    assert set(copied.rglob("*")) == before


def test_a_store_that_is_opened_twice(tiny_store: hta_sql.TraceStore) -> None:
    """A store can be opened safely twice in one process, although the engine is already locked."""
    with (
        hta_sql.TraceStore(tiny_store.path, safe=True) as first,
        hta_sql.TraceStore(tiny_store.path, safe=True) as second,
    ):
        query = "FROM runs ORDER BY run"
        assert first.sql(query).rows() == second.sql(query).rows()


def test_options_of_the_command(tiny_store: hta_sql.TraceStore, cli: Cli) -> None:
    """Time and row limits have command-line options, and errors name these options."""
    done = cli("sql", tiny_store.path, ENDLESS, "--timeout", "0.2")
    assert (done.code, "--timeout" in done.err) == (1, True)
    done = cli("sql", tiny_store.path, "FROM range(4)", "--max-rows", "3")
    assert (done.code, "--max-rows" in done.err) == (1, True)
    assert cli("sql", tiny_store.path, "FROM range(4)", "--max-rows", "3", "--unsafe").code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_memory_that_the_engine_does_not_count(tiny_store: hta_sql.TraceStore) -> None:
    """A string that keeps doubling exceeds the memory limit, and the command reports the error."""
    command = [sys.executable, "-m", "hta_sql", "sql", str(tiny_store.path), DOUBLED]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--memory-limit", "200MB"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "emory" in done.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("512MiB", 512 << 20), ("2GB", 2_000_000_000), ("1.5 kb", 1500), ("7B", 7)]
)
def test_sizes_are_read_as_the_engine_does(text: str, size: int) -> None:
    """Sizes are parsed as in the engine: MiB is binary, MB is decimal."""
    assert size_of(text) == size
