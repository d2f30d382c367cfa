"""Kill a removal or a rename before each file change, and query the store after every kill.

Run as a program: ``python change_rounds.py STORE remove|rename``. The store must have runs named a,
b and c. The program forks a child for each query and never opens a store itself, because the engine
does not survive a fork. After each kill, it prints the answer as one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hta_sql.store.maintenance.edits
import hta_sql.store.query.trace_store
from hta_sql.store.disk.manifest import read_manifest
from tests.safety.crash_rounds import done, finished, forked

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGING = ("os.link", "os.rename", "os.remove", "os.rmdir")


def busy(store: Path) -> str:
    """Return the kernel time of each run in a store [ns], as a JSON object."""
    with hta_sql.open(store) as opened:
        query = "SELECT run, sum(dur)::BIGINT FROM gpu_ops GROUP BY run ORDER BY run"
        return json.dumps(dict(opened.sql(query).rows()))


def seen(store: Path) -> str:
    """Query a store in a child process, and return the kernel times as JSON."""
    reading, writing = os.pipe()
    done(lambda: os.write(writing, busy(store).encode()))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def dying_before(operation: int, task: Callable[[], object]) -> None:
    """Run a task, and kill this process before its n-th file change."""
    count = 0

    def hook(event: str, _arguments: tuple[object, ...]) -> None:
        nonlocal count
        count += event in CHANGING
        if count == operation and event in CHANGING:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    task()


def check_the_next_write(store: Path) -> None:
    """Remove a different run, and check that this deletes the killed process's orphaned files."""
    done(partial(hta_sql.remove_runs, store, ["c"]))
    files = {p.relative_to(store).as_posix() for p in (store / "tables").rglob("*.parquet")}
    assert files == read_manifest(store).named_files()
    assert not list(store.rglob(".*.partial"))


def main(original: Path, change: str) -> None:
    """Repeat the change, killed before its first, second, ... operation, until it completes."""
    for operation in range(1, 1000):
        store = Path(shutil.copytree(original, original.with_name(f"{change}{operation}.store")))
        tasks: dict[str, Callable[[], object]] = {
            "remove": partial(hta_sql.remove_runs, store, ["a"]),
            "rename": partial(hta_sql.rename_run, store, "a", "z"),
        }
        code = finished(forked(partial(dying_before, operation, tasks[change])))
        assert code in (0, -signal.SIGKILL), code
        sys.stdout.write(seen(store) + "\n")
        check_the_next_write(store)
        shutil.rmtree(store)
        if code == 0:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
