"""A safe store runs queries in worker processes, so a crash or hang only affects one worker."""

from __future__ import annotations

import datetime as dt
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hta_sql
from hta_sql.errors import ParameterError, QueryError, StoreError
from hta_sql.store.query import worker_pool
from hta_sql.store.query.limits import Limits
from hta_sql.store.query.worker_protocol import LENGTH, WorkerDiedError, answer_of
from tests.cookbook.job import ingest_cookbook
from tests.safety.hostile_queries import WAYS, attacked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the tests send signals")

ENDLESS = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) AS a, range(1000000) AS b"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the cookbook job."""
    return ingest_cookbook(tmp_path_factory.mktemp("isolated"))


@pytest.fixture
def store(path: Path) -> Iterator[hta_sql.TraceStore]:
    """Open the store safely, with a limit of 30 s per query."""
    with hta_sql.TraceStore(path, safe=True, limits=Limits(seconds=30)) as opened:
        yield opened


def pool_of(store: hta_sql.TraceStore) -> worker_pool.Workers:
    """Return the worker pool of a store."""
    assert store._workers
    return store._workers


def when_running(store: hta_sql.TraceStore, act: Callable[[int], object]) -> None:
    """Call a function with the process id of a worker once it runs a query."""

    def watch() -> None:
        while not [worker for worker in pool_of(store)._busy if worker.sent]:
            time.sleep(0.01)
        time.sleep(0.2)
        act(pool_of(store)._busy[0].process.pid)

    threading.Thread(target=watch, daemon=True).start()


def lives(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(processes: list[int], seconds: float = 10) -> bool:
    """Return whether the processes exit before the timeout."""
    until = time.monotonic() + seconds
    while any(map(lives, processes)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(lives, processes))


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_worker_that_dies_is_an_error(store: hta_sql.TraceStore, number: signal.Signals) -> None:
    """If a worker dies, the error names the signal, and the store answers the next query."""
    when_running(store, lambda process: os.kill(process, number))
    with pytest.raises(QueryError, match=number.name):
        store.sql(ENDLESS)
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]


def test_a_worker_killed_between_queries_is_replaced(store: hta_sql.TraceStore) -> None:
    """A worker that is killed between queries is replaced without an error."""
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]
    for worker in list(pool_of(store)._idle):
        os.kill(worker.process.pid, signal.SIGKILL)
        assert gone([worker.process.pid])
    assert store.sql("SELECT 2 AS a").rows() == [(2,)]


def test_a_worker_killed_while_it_answers_is_an_error(
    store: hta_sql.TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a worker is killed while it sends its answer, no partial table is returned."""
    whole = answer_of

    def killed(process: Any, most_bytes: int) -> Any:
        process.answers.peek(1)  # the answer has begun and is larger than the pipe buffer
        os.kill(process.pid, signal.SIGKILL)
        return whole(process, most_bytes)

    store.sql("SELECT 1")
    monkeypatch.setattr(worker_pool, "answer_of", killed)
    with pytest.raises(QueryError, match="SIGKILL"):
        store.sql("SELECT repeat('x', 1000) AS x FROM range(20000)")
    monkeypatch.undo()
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]


def test_a_query_that_cannot_be_interrupted_is_killed(path: Path) -> None:
    """A worker that ignores the interrupt at its time limit is killed."""
    with hta_sql.TraceStore(path, safe=True, limits=Limits(seconds=4)) as store:
        store.sql("SELECT 1")  # on a busy machine, it takes seconds to start the worker
        when_running(store, lambda process: os.kill(process, signal.SIGSTOP))
        began = time.monotonic()
        with pytest.raises(QueryError, match=r"Interrupted after 4 s.*--timeout"):
            store.sql(ENDLESS)
        assert time.monotonic() - began < 10
        assert store.sql("SELECT 1 AS a").rows() == [(1,)]


def test_no_query_waits_for_nine_others(store: hta_sql.TraceStore) -> None:
    """Nine endless queries do not delay other queries, and interrupt() stops all nine."""
    with ThreadPoolExecutor(9) as pool:
        running = [pool.submit(store.sql, ENDLESS) for _ in range(9)]
        while len(pool_of(store)._busy) < 9:
            time.sleep(0.02)
        for _ in range(5):
            assert store.sql("SELECT 1 AS a").rows() == [(1,)]
        assert not any(query.done() for query in running)
        store.interrupt()
        for query in running:
            with pytest.raises(QueryError, match="Interrupted"):
                query.result(timeout=20)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory of processes is not measured")
def test_all_queries_together_have_one_memory_limit(
    store: hta_sql.TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the queries together exceed the memory limit, the largest one is killed."""
    store.sql("SELECT 1")
    monkeypatch.setattr(pool_of(store), "_memory", 1)
    with pytest.raises(QueryError, match="Out of Memory: together, the queries of this store"):
        store.sql(ENDLESS)
    monkeypatch.undo()
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]


VALUES = [
    *(None, True, 7, 1.5, "ä", b"\x00\xff", Decimal("1.25"), float("inf"), [1, None], {"a": [1]}),
    dt.datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 - a TIMESTAMP has none
    dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
    *(dt.date(2026, 1, 2), dt.time(1, 2), dt.timedelta(days=1), np.int64(5), np.float32(0.5)),
]


def outcome(store: hta_sql.TraceStore, value: Any) -> tuple[object, ...]:
    """Return the schema and rows of a query with a parameter, or its error message."""
    try:
        table = store.sql("SELECT $a AS a, typeof($a) AS t", {"a": value}).arrow()
    except QueryError as error:
        return (str(error),)
    return str(table.schema), table.to_pylist()


def test_parameters_of_every_kind_are_bound_as_before(
    path: Path, tmp_path: Path, store: hta_sql.TraceStore
) -> None:
    """A worker binds parameters exactly as the engine in this process does."""
    del tmp_path
    own = path.with_name("own.store")
    if not own.exists():
        hta_sql.ingest(path.parent / "before", own, run="before").close()
    with hta_sql.open(own) as plain:
        for value in VALUES:
            assert outcome(store, value) == outcome(plain, value)
    assert store.sql("SELECT ? + ? AS a", [1, 2]).rows() == [(3,)]
    with pytest.raises(ParameterError, match="cannot be sent"):
        store.sql("SELECT $a", {"a": threading.Lock()})


def test_errors_are_those_of_the_engine(store: hta_sql.TraceStore) -> None:
    """Errors in a worker have the same class and message as errors in this process."""
    with pytest.raises(QueryError, match=r"Binder Error.*nope"):
        store.sql("SELECT nope FROM gpu_ops")
    with pytest.raises(QueryError, match="Only read-only queries"):
        store.sql("COPY (SELECT 1) TO 'x.csv'")
    with pytest.raises(QueryError, match="surrogates"):
        store.sql("SELECT '\ud800'")
    # 62 levels in seven queries: fewer brackets and queries than the check allows.
    query = "SELECT [[1]] AS v"
    for _ in range(6):
        query = f"SELECT {'[' * 10}v{']' * 10} AS v FROM ({query})"  # noqa: S608 - no value
    with pytest.raises(QueryError, match="more than 60 levels of nesting"):
        store.sql(query)


def test_a_worker_that_writes_garbage_is_taken_for_dead() -> None:
    """A worker that writes garbage counts as dead, and its output is not unpickled."""

    class Process:
        def __init__(self, content: bytes) -> None:
            self.answers = io.BytesIO(content)

    table = b'{"table": true}'
    for content in (
        b"",
        LENGTH.pack(2**60),
        LENGTH.pack(4) + b"nope",
        LENGTH.pack(2) + b"[]",
        LENGTH.pack(100_000) + b"[" * 100_000,
        LENGTH.pack(len(table)) + table,
        LENGTH.pack(len(table)) + table + b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x07" * 64,
    ):
        with pytest.raises(WorkerDiedError):
            answer_of(Process(content), 1 << 20)  # type: ignore[arg-type]


def processes_of(store: hta_sql.TraceStore) -> list[int]:
    """Return the ids of all processes of a store."""
    store.sql("SELECT 1")
    pool = pool_of(store)
    server = pool._processes._server
    return [w.process.pid for w in pool._idle] + ([server._child.pid] if server else [])


def test_a_store_that_is_closed_or_let_go_leaves_no_process(path: Path) -> None:
    """Closing or deleting a store ends its processes, and its running query raises an error."""
    closed = hta_sql.TraceStore(path, safe=True)
    processes = processes_of(closed)
    when_running(closed, lambda _: closed.close())
    with pytest.raises(StoreError, match="closed"):
        closed.sql(ENDLESS)
    with pytest.raises(StoreError, match="closed"):
        closed.sql("SELECT 1")
    let_go = hta_sql.TraceStore(path, safe=True)
    processes += processes_of(let_go)
    del let_go
    gc.collect()
    assert gone(processes)


SCRIPT = """
import sys, time, hta_sql
store = hta_sql.TraceStore(sys.argv[1], safe=True)
store.sql("SELECT 1")
pool = store._workers
print(*[w.process.pid for w in pool._idle], flush=True)
if sys.argv[2] == "wait":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["killed", "ends"])
def test_workers_end_with_their_parent(path: Path, end: str) -> None:
    """Workers end when their parent script ends or is killed, even without a main guard."""
    how = "wait" if end == "killed" else "go"
    command = [sys.executable, "-c", SCRIPT, str(path), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:  # noqa: S603
        assert script.stdout
        processes = [int(word) for word in script.stdout.readline().split()]
        if end == "killed":
            script.kill()
    assert processes
    assert gone(processes)


def asked_by_command(path: Path, act: Callable[[int], object]) -> tuple[int, str]:
    """Run an endless query with ``hta-sql sql``, and act on its child process.

    Returns:
        Exit code and stderr of the command.
    """
    command = [sys.executable, "-m", "hta_sql", "sql", str(path), ENDLESS, "--timeout", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text().split():
            time.sleep(0.02)
        time.sleep(1.5)
        act(int(children.read_text().split()[0]))
        _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.skipif(sys.platform != "linux", reason="finds the fork in /proc")
def test_the_command_ends_with_a_message_not_with_a_crash(path: Path) -> None:
    """``hta-sql sql`` reports an engine crash or an ignored interrupt as a one-line error."""
    code, err = asked_by_command(path, lambda child: os.kill(child, signal.SIGSEGV))
    assert (code, err.startswith("error: The query process was terminated by SIGSEGV")) == (1, True)
    code, err = asked_by_command(path, lambda child: os.kill(child, signal.SIGSTOP))
    assert (code, err.startswith("error: Interrupted after 2 s")) == (1, True)


@pytest.mark.slow(reason="processes")
@pytest.mark.parametrize("way", WAYS)
def test_hostile_queries_kill_and_block_nothing(path: Path, way: str) -> None:
    """A small run of ``tests.safety.hostile_queries`` kills no process and blocks no query."""
    figures = attacked(way, str(path), 30, 1)
    assert figures["died"] == 0, figures
    assert figures["hostile"] == 30
    assert [query for seconds, query in figures["late"] if seconds > 15] == []
    assert figures["quick"] > 0
