"""A safe store runs queries in worker processes, so a crash or hang only affects one worker."""

from __future__ import annotations

import datetime as dt
import gc
import io
import os
import pickle
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
from hta_sql.errors import HtaSqlError, ParameterError, QueryError, StoreError
from hta_sql.store.query import worker_process
from hta_sql.store.query.limits import Limits
from hta_sql.store.query.worker_process import WorkerProcess, answer_of
from hta_sql.store.query.workers import IDLE_WORKERS, Workers
from tests.cookbook.job import ingest_cookbook
from tests.safety.hostile_queries import WAYS, attacked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the tests send signals")

DEEP = "repeat('[', 99999) || repeat(']', 99999)"
NESTED = "WITH a AS (" * 9 + "SELECT 1 1" + ") FROM a" * 9
"""A query whose syntax error the parser finds after minutes, without listening to an interrupt."""

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


def workers_of(store: hta_sql.TraceStore) -> Workers:
    """Return the workers of a store."""
    assert store._workers
    return store._workers


def processes_of(store: hta_sql.TraceStore) -> list[int]:
    """Return the ids of all worker processes of a store."""
    store.sql("SELECT 1")
    return [worker.pid or 0 for worker in workers_of(store)._all() if worker.is_alive()]


def running(store: hta_sql.TraceStore) -> list[WorkerProcess]:
    """Return the workers that run a query."""
    return [worker for worker in workers_of(store)._running if worker.is_ready]


def when_running(store: hta_sql.TraceStore, act: Callable[[int], object]) -> None:
    """Call a function with the process id of a worker once it runs a query."""

    def watch() -> None:
        while not running(store):
            time.sleep(0.01)
        time.sleep(0.3)
        act(running(store)[0].pid or 0)

    threading.Thread(target=watch, daemon=True).start()


def lives(process: int) -> bool:
    """Return whether a process exists and is not a zombie, all of whose threads have ended."""
    try:
        os.kill(process, 0)
        if not (status := Path(f"/proc/{process}/stat")).exists():
            return True
        is_zombie = status.read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_zombie or len(list(Path(f"/proc/{process}/task").iterdir())) > 1
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
    for process in processes_of(store):
        os.kill(process, signal.SIGKILL)
        assert gone([process])
    assert store.sql("SELECT 2 AS a").rows() == [(2,)]


def test_a_worker_killed_while_it_answers_is_an_error(
    store: hta_sql.TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a worker is killed while it sends its answer, no partial table is returned."""
    whole = answer_of

    def killed(pipe: Any, most_bytes: int) -> Any:
        pipe.peek(1)  # the answer has begun and is larger than the pipe buffer
        os.kill(running(store)[0].pid or 0, signal.SIGKILL)
        return whole(pipe, most_bytes)

    store.sql("SELECT 1")
    monkeypatch.setattr(worker_process, "answer_of", killed)
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
        asked = [pool.submit(store.sql, ENDLESS) for _ in range(9)]
        while len(running(store)) < 9:
            time.sleep(0.02)
        for _ in range(5):
            assert store.sql("SELECT 1 AS a").rows() == [(1,)]
        assert not any(query.done() for query in asked)
        store.interrupt()
        for query in asked:
            with pytest.raises(QueryError, match="Interrupted"):
                query.result(timeout=20)
    assert store.sql("SELECT 1 AS a").rows() == [(1,)]
    assert len(processes_of(store)) <= IDLE_WORKERS


def test_time_limits_hold_beside_hostile_queries(path: Path) -> None:
    """Nine queries that crash, hang or allocate end within 2 s of their time limit."""
    seconds, late_s, crash = 2.0, 2.0, f"SELECT json_contains({DEEP}, {DEEP})"
    hostile = [ENDLESS, crash, "SELECT repeat('x', 4000000000)", NESTED, "SELECT sleep_ms(60000)"]
    with hta_sql.TraceStore(path, safe=True, limits=Limits(seconds=seconds)) as store:

        def attack(query: str) -> float:
            began = time.monotonic()
            with pytest.raises(QueryError):
                store.sql(query)
            return time.monotonic() - began

        with ThreadPoolExecutor(9) as pool:
            asked = [pool.submit(attack, hostile[i % len(hostile)]) for i in range(9)]
            for _ in range(3):
                began = time.monotonic()
                assert store.sql("SELECT 1 AS a").rows() == [(1,)]
                assert time.monotonic() - began < seconds + late_s
            assert max(query.result() for query in asked) < seconds + late_s


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory of processes is not measured")
def test_all_queries_together_have_one_memory_limit(
    store: hta_sql.TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the queries together exceed the memory limit, the largest one is killed."""
    store.sql("SELECT 1")
    monkeypatch.setattr(workers_of(store), "_memory", 1)
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
    with pytest.raises(QueryError, match="Recursion level"):
        store.sql(f"SELECT NULL::INT{'[]' * 70} AS v")


def test_a_result_larger_than_the_memory_limit_is_refused(path: Path) -> None:
    """A result larger than the memory limit of a worker is an error, and is not read."""
    with hta_sql.TraceStore(path, safe=True, memory_limit="64MiB") as small:
        with pytest.raises(QueryError, match=r"Out of Memory|larger than 64 MiB"):
            small.sql("SELECT repeat('x', 10000) AS x FROM range(10000)")
        assert small.sql("SELECT 1 AS a").rows() == [(1,)]


def test_what_a_worker_loads_is_not_memory_of_its_first_query(path: Path) -> None:
    """A worker with a low memory limit survives small queries, its first one too."""
    with hta_sql.TraceStore(path, safe=True, memory_limit="64MiB") as small:
        small.sql("SELECT 1 AS a")
        (worker,) = workers_of(small)._free
        first = worker.pid
        small.sql("SELECT 2 AS a")
        assert worker.pid == first
        assert worker.grown_bytes() < 16 << 20


def test_a_worker_that_writes_garbage_is_taken_for_dead() -> None:
    """A worker that writes garbage counts as dead, and its output is not unpickled."""

    def frame(content: bytes) -> bytes:
        return len(content).to_bytes(8, "big") + content

    for content in (
        b"",
        frame(b"nope") + frame(b""),
        frame(b"[]") + frame(b""),
        frame(b"[" * 100_000) + frame(b""),
        frame(b"{}"),
        frame(b"{}") + frame(b"table")[:-1],
        frame(b"{}") + frame(b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x07" * 64),
        frame(pickle.dumps(HtaSqlError())) + frame(b""),
    ):
        with pytest.raises(EOFError):
            answer_of(io.BytesIO(content), 1 << 20)
    with pytest.raises(QueryError, match="larger than"):
        answer_of(io.BytesIO((2**60).to_bytes(8, "big")), 1 << 20)


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
print(*[worker.pid for worker in store._workers._all() if worker.is_alive()], flush=True)
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


def asked_by_command(path: Path, query: str, act: Callable[[int], object]) -> tuple[int, str]:
    """Run a query with ``hta-sql sql``, and act on its process.

    Returns:
        Exit code and stderr of the command.
    """
    command = [sys.executable, "-m", "hta_sql", "sql", str(path), query, "--timeout", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        act(process.pid)
        _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_the_command_names_the_query_that_crashed_it(path: Path) -> None:
    """``hta-sql sql`` names its query if the engine crashes, and ends if the engine hangs."""
    assert asked_by_command(path, "SELECT 1 AS a", lambda _: None) == (0, "")
    code, err = asked_by_command(path, f"SELECT json_contains({DEEP}, {DEEP})", lambda _: None)
    assert (code, err.startswith("error: The process ended during this query: SELECT")) == (
        -11,
        True,
    )
    code, err = asked_by_command(path, NESTED, lambda _: None)
    assert (code, err.startswith("error: Interrupted after 2 s")) == (-9, True)


def test_the_command_handles_signals(path: Path) -> None:
    """Ctrl-C interrupts a query of ``hta-sql sql``, as it does any command."""

    def act(process: int) -> None:
        time.sleep(2)
        os.kill(process, signal.SIGINT)

    command = f"{ENDLESS} -- slow"
    assert asked_by_command(path, command, act)[0] in (1, 130)


@pytest.mark.slow(reason="processes")
@pytest.mark.parametrize("way", WAYS)
def test_hostile_queries_kill_and_block_nothing(path: Path, way: str) -> None:
    """A small run of ``tests.safety.hostile_queries`` kills no process and blocks no query."""
    figures = attacked(way, str(path), 30, 1)
    assert figures["died"] == 0, figures
    assert figures["hostile"] == 30
    assert [query for seconds, query in figures["late"] if seconds > 15] == []
    assert (figures["quick"] > 0, figures["quick refused"]) == (True, 0)
