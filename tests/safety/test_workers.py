"""Traces that kill their worker are named with the reason; all other traces are stored."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces

DEADLY = Path(__file__).parent / "deadly"
DURATIONS = {rank: 100.0 + rank for rank in range(4)}


@pytest.fixture
def deadly_traces(write_traces: WriteTraces, monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Write traces of six ranks; the traces of ranks 4 and 5 kill every worker that opens them."""
    folder = write_traces({**DURATIONS, 4: 1.0, 5: 1.0})
    (folder / "rank4.json").rename(folder / "dies4.json")
    (folder / "rank5.json").rename(folder / "killed5.json")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DEADLY), *sys.path]))
    names = [*(f"rank{rank}.json" for rank in DURATIONS), "dies4.json", "killed5.json"]
    return {rank: str(folder / name) for rank, name in enumerate(names)}


def check(error: hta_sql.TraceError, store: Path, busy_times: BusyTimes) -> None:
    """Assert that both deadly traces are reported with the exit code or signal."""
    lines = str(error).splitlines()
    assert lines[0] == "2 of 6 traces could not be ingested:"
    dies, killed = sorted(lines[1:3])
    assert "dies4.json: the process that was reading it exited with code 7" in dies
    assert dies.endswith("libfoo: cannot allocate a widget")
    assert (
        "killed5.json: the process that was reading it was killed by SIGKILL (out of mem" in killed
    )
    assert lines[3] == "The other 4 are in the store."
    assert busy_times(store) == DURATIONS


def test_traces_that_kill_their_worker(
    deadly_traces: dict[int, str], tmp_path: Path, busy_times: BusyTimes
) -> None:
    """If traces kill workers and so break the pool, the lost tasks run again one at a time."""
    with pytest.raises(hta_sql.TraceError) as caught:
        hta_sql.ingest(deadly_traces, tmp_path / "job.store", jobs=2)
    check(caught.value, tmp_path / "job.store", busy_times)


def test_traces_that_kill_a_pool_of_the_caller(
    deadly_traces: dict[int, str], tmp_path: Path, busy_times: BusyTimes
) -> None:
    """If the caller's pool is broken, the remaining traces are read in this process."""
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        pytest.raises(hta_sql.TraceError) as caught,
    ):
        hta_sql.ingest(deadly_traces, tmp_path / "job.store", executor=pool)
    check(caught.value, tmp_path / "job.store", busy_times)


class Failing(Executor):
    """Executor in this process that raises an unexpected error for some ranks."""

    def submit(self, task: Any, /, *arguments: Any, **_options: Any) -> Future[Any]:
        """Run a task immediately, or fail if it is the task of rank 1."""
        future: Future[Any] = Future()
        if arguments[0].rank == 1:
            future.set_exception(ZeroDivisionError("division by zero"))
        else:
            future.set_result(task(*arguments))
        return future


def test_an_unexpected_error_of_a_worker_is_shown(
    write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """An unexpected error in a worker only affects its trace, and is chained as the cause."""
    with pytest.raises(hta_sql.TraceError) as caught:
        hta_sql.ingest(write_traces(DURATIONS), tmp_path / "job.store", executor=Failing())
    assert "rank1.json: ZeroDivisionError: division by zero" in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert sorted(busy_times(tmp_path / "job.store")) == [0, 2, 3]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_engine_costs_one_trace(
    write_traces: WriteTraces, tmp_path: Path, jobs: int
) -> None:
    """An engine error, such as running out of memory, is reported with its trace."""
    traces = write_traces(DURATIONS)
    with pytest.raises(hta_sql.TraceError, match=r"rank0.json: .*[Mm]emory"):
        hta_sql.ingest(traces, tmp_path / "job.store", jobs=jobs, memory_limit="1MiB")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_workers_end_with_their_parent(write_traces: WriteTraces, tmp_path: Path) -> None:
    """A killed ingest leaves no process that continues to write."""
    traces = write_traces(DURATIONS, events=20_000)
    code = (
        "import sys, hta_sql\n"
        "def told(*_): print('one', flush=True)\n"
        "hta_sql.ingest(sys.argv[1], sys.argv[2], jobs=2, progress=told)\n"
    )
    program = [sys.executable, "-c", code, str(traces), str(tmp_path / "job.store")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as parent:  # noqa: S603
        assert parent.stdout
        assert parent.stdout.readline() == "one\n"
        children = children_of(parent.pid)
        parent.send_signal(signal.SIGKILL)
    assert children
    until = time.monotonic() + 10
    while any(map(is_alive, children)):
        assert time.monotonic() < until, children
        time.sleep(0.05)


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children, read from /proc."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("no /proc here")
    return [int(number) for number in path.read_text().split()]


def is_alive(pid: int) -> bool:
    """Return whether a process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Sending(Executor):
    """Executor that pickles tasks, as a cluster does, and runs them in this process."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def submit(self, task: Any, /, *arguments: Any, **_options: Any) -> Future[Any]:
        """Pickle the task and its arguments, and run the copy."""
        self.sent.append(pickle.dumps((task, arguments)))
        future: Future[Any] = Future()
        there, given = pickle.loads(self.sent[-1])  # noqa: S301 - from the line above
        future.set_result(pickle.loads(pickle.dumps(there(*given))))  # noqa: S301 - likewise
        return future


def test_a_task_and_its_result_can_be_sent(
    write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """Pickled tasks are small because they do not contain events."""
    executor = Sending()
    traces = write_traces(DURATIONS, events=2_000)
    ingest_only(traces, tmp_path / "job.store", executor=executor)
    busy = {rank: 2_000 * duration for rank, duration in DURATIONS.items()}
    assert busy_times(tmp_path / "job.store") == busy
    assert len(executor.sent) == len(DURATIONS)
    assert max(map(len, executor.sent)) < 10_000
