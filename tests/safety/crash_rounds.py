"""Kill ingests at random operations, and query the store after each kill.

Run as a program: ``python crash_rounds.py FOLDER KILLS SEED``. A forked child ingests or publishes.
It is killed with SIGKILL, half of the time at a random moment and half of the time before a random
file operation. Meanwhile, other children query the store. In each version, every rank has one
kernel of 100 + version µs, so an answer reveals its version and whether versions are mixed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import hta_sql
import hta_sql.ingestion.ingest
import hta_sql.store.query.trace_store
from hta_sql.store.disk.manifest import read_manifest

RANKS = 2
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir"}


def write_version(traces: Path, version: int) -> None:
    """Write the traces of all ranks for a version, replacing the previous version."""
    traces.mkdir(exist_ok=True)
    for rank in range(RANKS):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0.0}
        kernel |= {"dur": 100.0 + version, "args": {"device": 0, "stream": 7}}
        trace = {"distributedInfo": {"rank": rank}, "traceEvents": [kernel]}
        (traces / f"rank{rank}.json").write_text(json.dumps(trace))


def version_of(store: Path) -> int:
    """Return the version of the data in a store; fail if the ranks have different versions."""
    with hta_sql.open(store, threads=1) as opened:
        table = opened.run("temporal_breakdown").arrow().to_pydict()
    (busy,) = set(table["compute_ns"])
    assert sorted(table["rank"]) == list(range(RANKS)), table
    return int(busy) // 1000 - 100


def ingest_all(traces: Path, store: Path) -> None:
    """Ingest all ranks in this process."""
    hta_sql.ingest(str(traces), store, run="job", jobs=1).close()


def ingest_shards(traces: Path, store: Path) -> None:
    """Ingest each rank as a separate shard, as the tasks of an array job do."""
    for number in range(1, RANKS + 1):
        hta_sql.ingest_shard(str(traces), store, run="job", jobs=1, shard=(number, RANKS))


def publish(_traces: Path, store: Path) -> None:
    """Publish the shards."""
    hta_sql.publish(store, expect=RANKS).close()


def forked(task: Callable[[], object]) -> int:
    """Fork a child that runs a task, and return its process id.

    The child exits with 0 unless the task raises.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        task()
        code = 0
    except BaseException:  # noqa: BLE001 - printed for the reader of the failed test
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def finished(child: int) -> int:
    """Wait for a child; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def done(task: Callable[[], object]) -> None:
    """Run a task in a child that must succeed."""
    assert finished(forked(task)) == 0


def seen(store: Path) -> int:
    """Query the version of a store in a child process, and return it."""
    reading, writing = os.pipe()
    done(lambda: os.write(writing, str(version_of(store)).encode()))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return int(pipe.read())


def killing_itself(before_operation: int, task: Callable[[], object]) -> Callable[[], object]:
    """Return a task that kills its own process before its n-th file operation."""

    def run() -> None:
        count = 0

        def hook(event: str, _arguments: tuple[object, ...]) -> None:
            nonlocal count
            if event in OPERATIONS:
                count += 1
                if count == before_operation:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        task()

    return run


def operations_of(task: Callable[[], object]) -> tuple[int, float]:
    """Return the number of file operations of a task, and its duration [s]."""
    reading, writing = os.pipe()

    def run() -> None:
        counts = [0]

        def hook(event: str, _arguments: tuple[object, ...]) -> None:
            counts[0] += event in OPERATIONS

        sys.addaudithook(hook)
        started = time.monotonic()
        task()
        os.write(writing, f"{counts[0]} {time.monotonic() - started}".encode())

    done(run)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        count, seconds = pipe.read().split()
    return int(count), float(seconds)


@contextmanager
def readers(store: Path, allowed: tuple[int, int]) -> Iterator[None]:
    """Query the store continuously; fail if a version is not allowed or older than the last one."""
    stop, stopping = os.pipe()

    def read() -> None:
        os.set_blocking(stop, False)
        os.close(stopping)
        last = allowed[0]
        while True:
            version = version_of(store)
            assert version in allowed[allowed.index(last) :], (version, last, allowed)
            last = version
            try:
                if os.read(stop, 1) == b"":
                    return
            except BlockingIOError:
                continue

    child = forked(read)
    os.close(stop)
    try:
        yield
    finally:
        os.close(stopping)
        assert finished(child) == 0, "a reader failed"


def leftovers(store: Path, before: set[str]) -> set[str]:
    """Return the files that neither the current nor the previous manifest names."""
    own = {"manifest.json", "catalog.duckdb", ".lock"}
    known = read_manifest(store).named_files() | before | own
    found = {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}
    return {name for name in found - known if not name.endswith(".lock")}


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill ingests, query the store after each kill, and print how many kills it survived."""
    chance = random.Random(seed)
    traces, store = folder / "traces", folder / "job.store"
    write_version(traces, 0)
    done(lambda: ingest_all(traces, store))
    write_version(traces, 1)
    modes: dict[str, tuple[Callable[[Path, Path], None], int, float]] = {}
    for mode in (ingest_all, ingest_shards, publish):
        operations, seconds = operations_of(partial(mode, traces, store))
        modes[mode.__name__] = (mode, operations, seconds)
        if mode is ingest_all:
            write_version(traces, 2)
    version, killed, changed = 2, 0, 0
    assert seen(store) == version
    while killed < kills:
        target = version + 1
        write_version(traces, target)
        name = chance.choice(["ingest_all", "ingest_all", "ingest_shards", "publish", "publish"])
        kind, operations, seconds = modes[name]
        if kind is publish:
            done(lambda: ingest_shards(traces, store))
        task: Callable[[], object] = partial(kind, traces, store)
        by_operation = chance.random() < 0.5
        if by_operation:
            task = killing_itself(chance.randint(1, operations), task)
        with readers(store, (version, target)) if chance.random() < 0.3 else _nothing():
            child = forked(task)
            if not by_operation:
                time.sleep(chance.uniform(0, seconds * 1.1))
                os.kill(child, signal.SIGKILL)
            code = finished(child)
        assert code in (0, -signal.SIGKILL), code
        killed += code != 0
        now = seen(store)
        assert now in (version, target), (name, now, version, target)
        changed += now == target
        version = now
        if chance.random() < 0.4:
            version = target + 1
            check_the_next_ingest(traces, store, version)
    sys.stdout.write(f"{killed} kills survived; {changed} times the new version was there\n")


def check_the_next_ingest(traces: Path, store: Path, version: int) -> None:
    """Ingest without a kill; check that the new version is complete and no file is orphaned."""
    before = read_manifest(store).named_files()
    write_version(traces, version)
    done(lambda: ingest_all(traces, store))
    assert seen(store) == version
    # Files of shards that were read but not published stay, because they may be published later.
    stray = {name for name in leftovers(store, before) if not _is_of_shard(store, name)}
    assert not stray, stray


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _is_of_shard(store: Path, name: str) -> bool:
    if name.startswith("shards/"):
        return True
    writers = [json.loads(p.read_text())["writer"] for p in store.glob("shards/*.json")]
    return Path(name).name.removeprefix(".").startswith(tuple(writers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
