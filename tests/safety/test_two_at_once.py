"""Concurrent ingests into one store run one after the other."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.safety.conftest import BusyTimes, WriteTraces


def started(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a Python process that runs the given code."""
    program = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(  # noqa: S603 - our own code
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_second_waits_and_says_so(
    tmp_path: Path,
    write_traces: WriteTraces,
    busy_times: BusyTimes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A waiting ingest logs which process it waits for, and continues when that one is done."""
    store = tmp_path / "job.store"
    traces = write_traces({0: 100.0})
    holding = threading.Event()

    def hold() -> None:
        with store_lock(store_folder(store)):
            holding.set()
            time.sleep(0.5)

    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        held = pool.submit(hold)
        holding.wait()
        ingest_only(traces, store, lock_timeout=30)
        held.result()
    assert "waiting up to 30 s for it" in caplog.text
    assert f"process {os.getpid()} on" in caplog.text
    assert busy_times(store) == {0: 100.0}


def test_after_the_timeout_it_fails(tmp_path: Path, write_traces: WriteTraces) -> None:
    """After the lock timeout, an error says that another process is still writing."""
    store = tmp_path / "job.store"
    traces = write_traces({0: 100.0})
    with store_lock(store_folder(store)):
        with pytest.raises(hta_sql.StoreError, match=r"is still writing to .* after 0.2 s"):
            hta_sql.ingest(traces, store, lock_timeout=0.2)
        assert [path.name for path in store.iterdir()] == [".lock"]


def test_a_lock_that_is_removed_by_who_holds_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that waits for a lock file that is deleted and created again keeps waiting."""
    folder, got = store_folder(tmp_path), threading.Event()

    def wait() -> None:
        with store_lock(folder):
            got.set()

    with ExitStack() as second:
        with store_lock(folder):
            waiting = threading.Thread(target=wait)
            waiting.start()
            while "waiting up to" not in caplog.text:
                time.sleep(0.01)
            (tmp_path / ".lock").unlink()
            second.enter_context(store_lock(folder))
        assert not got.wait(0.2)
    waiting.join()
    assert got.is_set()


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path, write_traces: WriteTraces) -> None:
    """The operating system releases the lock of a dead process."""
    store = tmp_path / "job.store"
    code = (
        "import sys, time\n"
        "from hta_sql.store.disk.locks import store_lock\n"
        "from hta_sql.store.disk.folder import store_folder\n"
        "with store_lock(store_folder(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with started(code, store) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        traces = write_traces({0: 100.0})
        with pytest.raises(hta_sql.StoreError, match=f"process {holder.pid} on"):
            hta_sql.ingest(traces, store, lock_timeout=0)
        holder.kill()
        holder.wait()
        ingest_only(traces, store, lock_timeout=0)


def test_different_traces_into_one_store(tmp_path: Path, write_traces: WriteTraces) -> None:
    """Runs that several processes ingest concurrently are all stored."""
    store = tmp_path / "job.store"
    code = "import hta_sql, sys; hta_sql.ingest(sys.argv[1], sys.argv[2], run=sys.argv[3]).close()"
    write_traces({0: 100.0}, "a")
    write_traces({0: 200.0, 1: 200.0}, "b")
    processes = [started(code, tmp_path / name, store, name) for name in ("a", "b", "a", "b")]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["a", "b"]
        assert (opened.ranks("a"), opened.ranks("b")) == ([0], [0, 1])


def test_two_notebooks_open_one_folder(write_traces: WriteTraces) -> None:
    """If two processes open a new folder at once, both get rows, but only one ingests it."""
    traces = write_traces({0: 100.0, 1: 110.0})
    code = (
        "import sys\n"
        "from hta_sql.hta.trace_analysis import TraceAnalysis\n"
        "with TraceAnalysis(trace_dir=sys.argv[1]) as analysis:\n"
        "    print(analysis.get_temporal_breakdown()['compute_time(us)'].tolist())\n"
        "    print(len(analysis.store.ingested.results))\n"
    )
    outputs = []
    for process in [started(code, traces) for _ in range(2)]:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        outputs.append(out.split("\n"))
    assert [lines[0] for lines in outputs] == ["[100.0, 110.0]"] * 2
    assert sorted(lines[1] for lines in outputs) == ["0", "2"]
