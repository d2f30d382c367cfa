"""A store can be shared by many threads, forked and pickled."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import hta_sql
from tests.cookbook.job import ingest_cookbook
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing to fork")
SLOW = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) AS a, range(1000000) AS b"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the cookbook job."""
    return ingest_cookbook(tmp_path_factory.mktemp("threads"))


@pytest.fixture(params=[False, True], ids=["open", "safe"])
def store(path: Path, request: pytest.FixtureRequest) -> Iterator[TraceStore]:
    """Open the store, and in safe mode a copy of it, as each mode needs a separate engine."""
    if request.param:
        path = path.with_name("safe.store")
        if not path.exists():
            ingest_only(path.parent / "before", path, run="before")
    with hta_sql.TraceStore(path, safe=request.param) as opened:
        yield opened


def questions(store: TraceStore) -> list[Callable[[], Any]]:
    """Return one call for each kind of query."""
    return [
        lambda: store.run("temporal_breakdown", ranks=[0]).rows(),
        lambda: store.run("temporal_breakdown", ranks=[1]).rows(),
        lambda: store.sql("SELECT name, sum(dur) FROM gpu_ops GROUP BY ALL ORDER BY ALL").rows(),
        lambda: store.sql("SELECT $a AS a, count(*) FROM events", {"a": 7}).rows(),
        lambda: list(store.table("gpu_ops", ranks=[1]).df()["name"]),
        lambda: list(store.run("gpu_kernels_by_name").df()["name"]),
        lambda: (store.runs(), store.ranks(), repr(store)),
    ]


def test_many_threads_get_what_one_gets(store: TraceStore) -> None:
    """Eighty queries in eight threads return the same rows as in one thread."""
    asked = questions(store)
    alone = [question() for question in asked]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda number: asked[number % len(asked)](), range(80)))
    assert together == [alone[number % len(alone)] for number in range(80)]


def test_a_catalog_is_replaced_while_others_ask(tmp_path: Path) -> None:
    """Queries in other threads succeed while the first analysis replaces the catalog."""
    with hta_sql.open(ingest_cookbook(tmp_path)) as store, ThreadPoolExecutor(4) as pool:
        counts = [pool.submit(store.sql, "SELECT count(*) FROM gpu_ops") for _ in range(20)]
        first = pool.submit(store.run, "collective_waits")
        counts += [pool.submit(store.sql, "SELECT count(*) FROM gpu_ops") for _ in range(200)]
        assert len({str(count.result().rows()) for count in counts}) == 1
        assert first.result().rows() == store.run("collective_waits").rows()


def test_errors_stay_in_their_thread(store: TraceStore) -> None:
    """A failing query does not affect queries in other threads."""

    def ask(number: int) -> object:
        if number % 2:
            return store.sql("SELECT 1").rows()
        with pytest.raises(hta_sql.QueryError):
            store.sql("SELECT no_such_column FROM gpu_ops")
        return None

    with ThreadPoolExecutor(4) as pool:
        assert set(map(str, pool.map(ask, range(40)))) == {"[(1,)]", "None"}


def test_ranks_side_by_side_as_frames(path: Path) -> None:
    """HTA's methods return the same frames when they run in several threads."""
    with hta_sql.TraceAnalysis(store=path) as analyzer:

        def idle(rank: int) -> pd.DataFrame:
            frame: pd.DataFrame = analyzer.get_idle_time_breakdown(ranks=[rank], visualize=False)[0]
            return frame

        with ThreadPoolExecutor(3) as pool:
            together = list(pool.map(idle, [0, 1] * 5))
        for number, frame in enumerate(together):
            pd.testing.assert_frame_equal(frame, idle(number % 2))


def test_interrupt_stops_every_question(path: Path) -> None:
    """interrupt() stops all running queries, and no others."""
    with hta_sql.open(path) as store, ThreadPoolExecutor(2) as pool:
        running = [pool.submit(store.sql, SLOW) for _ in range(2)]
        while len(store._connection._asking) < 2:
            time.sleep(0.01)
        time.sleep(0.1)
        store.interrupt()
        for question in running:
            with pytest.raises(hta_sql.QueryError, match=r"(?i)interrupt"):
                question.result(timeout=20)
        assert store.sql("SELECT 1").rows() == [(1,)]


def test_a_closed_store_says_so(path: Path) -> None:
    """Queries of a closed store raise an error, and so do queries of its copies."""
    store = hta_sql.open(path)
    store.close()
    store.close()
    for closed in (store, pickle.loads(pickle.dumps(store)), copy.copy(store)):  # noqa: S301
        for question in (closed.runs, lambda: closed.sql("SELECT 1"), lambda: closed.catalog_path):  # noqa: B023
            with pytest.raises(hta_sql.StoreError, match=r"is closed; open it again"):
                question()
        assert "closed" in repr(closed)


def in_child(question: Callable[[], object]) -> int:
    """Fork, run a query in the child, and return the child's exit code."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            question()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
def test_a_fork_opens_anew(store: TraceStore) -> None:
    """A forked process, and its own fork, reopen the store and return the same rows."""
    asked = questions(store)
    alone = [question() for question in asked]

    def ask() -> None:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(lambda question: question(), asked)) == alone

    def ask_twice() -> None:
        ask()
        assert in_child(ask) == 0
        store.close()

    assert in_child(ask_twice) == 0
    ask()


@needs_fork
def test_a_fork_opens_other_stores_of_the_same_catalog(path: Path) -> None:
    """A fork does not share the parent's engine instance when it opens the same catalog again."""
    with hta_sql.open(path) as store:
        expected = store.run("temporal_breakdown").rows()

        def ask() -> None:
            with hta_sql.open(path, threads=1) as other:
                assert other.run("temporal_breakdown").rows() == expected

        assert in_child(ask) == 0


@needs_fork
def test_a_fork_while_threads_ask(path: Path) -> None:
    """A process can fork while its threads run queries, and queries in the child are correct."""
    with hta_sql.open(path) as store:
        expected = store.run("temporal_breakdown").rows()
        stop = threading.Event()

        def keep_asking() -> None:
            while not stop.is_set():
                store.run("gpu_kernels_by_name")

        def ask() -> None:
            assert store.run("temporal_breakdown").rows() == expected

        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(keep_asking) for _ in range(2)]
            codes = [in_child(ask) for _ in range(5)]
            stop.set()
            for question in asking:
                question.result()
        assert codes == [0] * 5


FORKS = """
import os, sys, hta_sql
store = hta_sql.open(sys.argv[1])
before = store.run("temporal_breakdown").rows()
if os.fork() == 0:
    assert store.run("temporal_breakdown").rows() == before
    sys.exit(0)
_, status = os.wait()
store.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@needs_fork
def test_a_child_that_ends_like_any_program(path: Path) -> None:
    """A forked child that exits normally does not crash on objects of its parent."""
    done = subprocess.run([sys.executable, "-c", FORKS, path], check=False, timeout=120)  # noqa: S603
    assert done.returncode == 0


def compute_time(analyzer: hta_sql.TraceAnalysis, rank: int) -> list[Any]:
    """Return the run, the ranks and a rank's breakdown, as a task in a worker."""
    rows: list[Any] = analyzer.store.run("temporal_breakdown", ranks=[rank]).rows()
    return [analyzer.run, analyzer.ranks, *rows]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_analysis_goes_to_workers(path: Path, method: str) -> None:
    """An analysis is pickled as the path and options of its store, which a worker opens."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    with hta_sql.TraceAnalysis(store=path, run="after") as analyzer:
        assert not analyzer.t.get_trace(0).empty
        sent = pickle.dumps(analyzer)
        assert len(sent) < 1500
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            found = list(pool.map(compute_time, [analyzer, analyzer], [0, 1]))
        assert found == [compute_time(analyzer, rank) for rank in (0, 1)]


def test_a_store_is_pickled_as_path_and_options(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store is pickled as its path and options; unpickling fails if the store is missing."""
    monkeypatch.chdir(path.parent)
    with hta_sql.TraceStore(path.name, threads=2, memory_limit="300MiB") as store:
        sent = pickle.dumps(store)
        monkeypatch.chdir("/")
        with pickle.loads(sent) as other:  # noqa: S301
            assert other.run("temporal_breakdown").rows() == store.run("temporal_breakdown").rows()
            assert other.sql("SELECT current_setting('threads') AS n").rows() == [(2,)]
    gone = pickle.dumps(store).replace(b"cookbook.store", b"nowhere__store")
    closed = pickle.loads(gone)  # noqa: S301
    with pytest.raises(hta_sql.StoreError, match="closed"):
        closed.runs()
    with pytest.raises(hta_sql.StoreNotFoundError, match="nowhere__store"):
        pickle.loads(sent.replace(b"cookbook.store", b"nowhere__store"))  # noqa: S301
