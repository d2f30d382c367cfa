"""A long replay reports its progress, and stops when it is interrupted or exceeds a limit."""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.replay.arrays import Graph
from hta_sql.replay.schedule import Schedule
from hta_sql.replay.watch import ComputationStoppedError, Watch
from hta_sql.store.catalog.materialize import materialize, materialize_for
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.query.limits import Limits
from hta_sql.synthetic import JobSpec, write_job

Started = threading.Event


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two ranks with two steps, and materialize the derived tables except the replay."""
    folder = tmp_path_factory.mktemp("watched")
    write_job(folder / "traces", JobSpec(ranks=2, steps=2))
    with hta_sql.ingest(folder / "traces", folder / "job.store", run="job") as store:
        store.run("collective_waits")
    return folder / "job.store"


@pytest.fixture
def store(ingested: Path, tmp_path: Path) -> Path:
    """Copy the ingested store."""
    return Path(shutil.copytree(ingested, tmp_path / "job.store"))


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Make the pass over the graph endless; return an event that is set when it begins."""
    started = threading.Event()

    def passes(_: Graph, watch: Watch) -> Schedule:
        while True:
            started.set()
            watch.check()
            time.sleep(0.01)

    monkeypatch.setattr("hta_sql.replay.sweep.scheduled", passes)
    return started


@pytest.fixture
def endless_sql(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Make a SQL statement of the replay take hours; return an event that is set before it."""
    started = threading.Event()

    def reads(con: duckdb.DuckDBPyConnection, *_: object) -> None:
        started.set()
        con.execute("SELECT count(*) FROM range(10000000000000) AS r(i) WHERE hash(i) = 1")

    monkeypatch.setattr("hta_sql.replay.rows.read_replay", reads)
    return started


def is_replayed(store: Path) -> bool:
    """Return whether the replay is materialized."""
    return "replays" in {kept.table for kept in read_manifest(store).materialized}


def seconds_until_stopped(ask: Callable[[], object], stop: Callable[[], None]) -> float:
    """Return the time from ``stop()`` until a query in another thread ends with an error [s]."""
    errors: list[Exception] = []

    def asks() -> None:
        try:
            ask()
        except QueryError as error:
            errors.append(error)

    thread = threading.Thread(target=asks)
    thread.start()
    stop()
    began = time.monotonic()
    thread.join(20)
    took = time.monotonic() - began
    assert [str(error) for error in errors] == ["Interrupted."]
    return took


@pytest.mark.parametrize("where", ["endless", "endless_sql"])
def test_an_interrupt_ends_a_replay_within_a_second(
    where: str, store: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt stops a replay within a second, and the next query starts it again."""
    started: Started = request.getfixturevalue(where)
    with hta_sql.open(store) as opened:

        def stop() -> None:
            assert started.wait(20)
            time.sleep(0.2)
            opened.interrupt()

        assert seconds_until_stopped(lambda: opened.run("what_if"), stop) < 1
        assert not is_replayed(store)
        monkeypatch.undo()
        assert opened.run("what_if").arrow().column("replayed_ns").null_count < 8
    assert is_replayed(store)


@pytest.mark.parametrize("where", ["endless", "endless_sql"])
def test_a_time_limit_ends_a_replay_within_a_second(
    where: str, store: Path, request: pytest.FixtureRequest
) -> None:
    """A replay stops within a second after its time limit, and the error suggests a remedy."""
    started: Started = request.getfixturevalue(where)
    with hta_sql.TraceStore(store, limits=Limits(seconds=3)) as opened:
        began = time.monotonic()
        with pytest.raises(QueryError, match=r"Interrupted after 3 s.*hta-sql materialize"):
            opened.run("what_if")
        assert time.monotonic() - began < 4
    assert started.is_set()
    assert not is_replayed(store)


def test_a_time_limit_ends_what_is_computed_before_a_query(store: Path, endless: Started) -> None:
    """The time limit of a query also covers derived tables that are computed before it."""
    with pytest.raises(ComputationStoppedError, match="Interrupted after 3 s"):
        materialize_for(store, "FROM replays", watch=Watch(3))
    assert endless.is_set()


def test_a_replay_reports_its_progress(store: Path) -> None:
    """A replay reports increasing progress and then that it is done."""
    reports: list[tuple[str, int, int]] = []
    with hta_sql.open(store) as opened:
        opened.report_progress(lambda *report: reports.append(report))
        opened.run("what_if")
    replay = [(what, done) for what, done, _ in reports if what.startswith("replay of job")]
    assert [done for _, done in replay] == sorted({done for _, done in replay})
    assert replay[0][0] == "replay of job: replay_nodes"
    assert replay[-1][0] == "replay of job: faster kernels"
    assert all(done < total for _, done, total in reports[:-1])
    assert reports[-1] == ("done", 1, 1)


def test_a_replay_too_large_for_the_memory_limit_says_so(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A replay that exceeds the memory limit is a warning of the query, and one of the failures."""
    monkeypatch.setattr("hta_sql.replay.graph.NODE_BYTES", 100 << 20)
    expected = "the replay of run job needs about .* GB, more than the limit of 512MiB"
    with (
        caplog.at_level(logging.WARNING, "hta_sql"),
        hta_sql.TraceStore(store, memory_limit="512MiB") as opened,
    ):
        rows = opened.run("what_if").arrow().to_pylist()
        assert {row["reason_code"] for row in rows} == {"what_if.not_replayed"}
    assert "the replay of run job needs about" in caplog.text
    failed: dict[tuple[str, str], str] = {}
    materialize(store, failed=failed, watch=Watch(memory_limit="512MiB"))
    assert list(failed) == [("replays", "job")]
    assert re.search(expected, failed["replays", "job"])
