"""Tests of a store with 200 runs of 8 ranks: opening it, listing runs, and querying one run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import hta_sql
from tests.test_catalog import files_read, many_runs

if TYPE_CHECKING:
    from collections.abc import Callable


def cpu_s(task: Callable[[], object]) -> float:
    """Return the shortest CPU time of five calls to a task [s]."""
    times = []
    for _ in range(5):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return min(times)


def test_a_store_of_many_runs_is_opened_like_one(
    ingest_trace: Callable[..., hta_sql.TraceStore], tmp_path: Path
) -> None:
    """Opening 200 runs takes less than three times as long as one run; a query reads its run only.

    The list of 1,600 ranks takes about as long as everything else that opening does.
    """
    with ingest_trace("gap_causes.json") as opened:
        one = opened.path
    many = tmp_path / "many.store"
    many_runs(one, many, runs=200, ranks=8)
    assert cpu_s(lambda: hta_sql.open(many).close()) < 3 * cpu_s(lambda: hta_sql.open(one).close())
    with duckdb.connect(str(many / "catalog.duckdb"), read_only=True) as con:
        assert con.sql("SELECT count(*), sum(rank_count) FROM runs").fetchall() == [(200, 1600)]
        assert files_read(con, "FROM runs") == set()
        assert files_read(con, "FROM gpu_ops WHERE run = 'run7'") == {"8/1600"}
        assert files_read(con, "FROM temporal_breakdown WHERE run = 'run7'") == {"8/1600"}
