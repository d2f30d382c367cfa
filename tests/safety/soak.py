"""Soak test: four writers and eight readers of one store, with kills, removals and damage.

Run as a program: ``python -m tests.safety.soak FOLDER SECONDS SEED``. Every 30 s it prints the
number of answers, changes, kills, files, bytes and temporary files. For readers that keep the store
open, it also prints memory and open files. The exit code is 1 if an answer was wrong, a failure was
unexpected, or a file is orphaned.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from functools import partial
from mmap import mmap
from pathlib import Path

import hta_sql
from hta_sql.machine import remove_temporary
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.maintenance.verify import verify_store
from tests.safety.crash_rounds import done, forked
from tests.safety.soak_actors import READERS, WRITERS, Writer, act
from tests.safety.soak_truth import write_traces

EVERY_S = 30
KILL_EVERY_S = 5
OWN = {"manifest.json", "catalog.duckdb", ".lock"}
MORE_MEMORY = 1.3
"""Maximum memory growth factor of a ``forever`` reader in the last two thirds of the test."""

COLUMNS = (
    *("second", "answers", "changes", "kills", "runs", "files", "folders", "kB", "in tmp"),
    *("in cache", "MB 1", "MB 2", "open 1", "open 2"),
)


class Soak:
    """The processes of a soak test, and their counters."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.names = [*WRITERS, *READERS]
        memory = mmap(-1, 8 * len(self.names))
        self.counts: memoryview[int] = memoryview(memory).cast("q")
        self.children: dict[int, int] = {}
        self.kills = 0
        self.table: list[tuple[int, ...]] = []

    def start(self, number: int) -> None:
        """Fork a process."""
        seed, name = self.chance.getrandbits(32), self.names[number]
        task = partial(act, self.folder, seed, number, name, self.counts)
        self.children[number] = forked(task)

    def kill(self, number: int) -> None:
        """Kill a process with SIGKILL."""
        os.kill(self.children[number], signal.SIGKILL)
        os.waitpid(self.children.pop(number), 0)

    def run(self, seconds: float) -> None:
        """Run the processes for a number of seconds, killing and restarting random ones."""
        began = time.monotonic()
        for number in range(len(self.names)):
            self.start(number)
        mortal = [n for n, name in enumerate(self.names) if name != "forever"]
        measured = began
        try:
            while (now := time.monotonic()) < began + seconds:
                if now >= measured + min(EVERY_S, seconds / 4):
                    measured = now
                    self.measure(now - began)
                time.sleep(self.chance.uniform(0, 2 * KILL_EVERY_S))
                number = self.chance.choice(mortal)
                self.kill(number)
                self.kills += 1
                self.start(number)
            self.measure(time.monotonic() - began)
        finally:
            for number in list(self.children):
                self.kill(number)

    def measure(self, second: float) -> None:
        """Measure the store and the readers, and print a line of the table."""
        store = self.folder / "job.store"
        files = files_below(store)
        forever = [self.children[n] for n, name in enumerate(self.names) if name == "forever"]
        writers = len(WRITERS)
        line = (
            *(int(second), sum(self.counts[writers:]), sum(self.counts[:writers]), self.kills),
            len(list((store / "tables" / "gpu_ops").glob("run=*"))),
            len(files),
            sum(1 for _ in store.rglob("*/")),
            sum(size for _, size in files) // 1000,
            len(list((self.folder / "tmp").iterdir())),
            len(files_below(self.folder / "cache")),
            *(resident(child) for child in forever),
            *(len(list(Path(f"/proc/{child}/fd").iterdir())) for child in forever),
        )
        if not self.table:
            say(" ".join(f"{column:>8}" for column in COLUMNS))
        self.table.append(line)
        say(" ".join(f"{value:8,}" for value in line))


def files_below(folder: Path) -> list[tuple[Path, int]]:
    """Return the files below a folder with their sizes, except files deleted in the meantime."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found.append((Path(place, name), Path(place, name).stat().st_size))
            except FileNotFoundError:
                continue
    return found


def resident(process: int) -> int:
    """Return the private memory of a process [MB]."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(li.split()[1]) for li in lines if li.startswith("Private_")) // 1000


def say(line: str) -> None:
    """Print a line, and flush stdout."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def settle(folder: Path) -> None:
    """Complete interrupted changes, restore the store, and delete orphaned files with an ingest."""
    store = folder / "job.store"
    for role in WRITERS:
        writer = Writer(folder, role, random.Random(0))
        if writer.journal.unfinished:
            writer.next()
    Writer(folder, "edits", random.Random(0)).restore()
    hta_sql.ingest(write_traces(folder / "traces" / "last", 1), store, run="last").close()
    hta_sql.remove_runs(store, "last")
    found = verify_store(store, deep=True).faults
    remove_temporary()  # a forked process does not do so at exit
    assert not found, found


def left_over(folder: Path) -> list[str]:
    """Return the orphaned files of the store, and the remaining temporary files."""
    store = folder / "job.store"
    known = read_manifest(store).named_files() | OWN
    names = [path.relative_to(store).as_posix() for path, _ in files_below(store)]
    strangers = [name for name in names if name not in known]
    return strangers + [f"tmp/{path.name}" for path in (folder / "tmp").iterdir()]


def judged(soak: Soak) -> list[str]:
    """Return a description of each failure."""
    folder, found = soak.folder, []
    for kind in ("wrong", "failures"):
        if (folder / kind).exists():
            text = (folder / kind).read_text()
            found.append(f"{kind}: {text[:20_000]}")
    done(partial(settle, folder))
    if left := left_over(folder):
        found.append(f"left over: {sorted(left)[:30]}, {len(left):,} in all")
    early, last = soak.table[len(soak.table) // 3], soak.table[-1]
    for column in ("MB 1", "MB 2", "open 1", "open 2"):
        at = COLUMNS.index(column)
        if last[at] > early[at] * MORE_MEMORY + 20:
            found.append(f"{column} grew from {early[at]:,} to {last[at]:,}")
    return found


def main(folder: Path, seconds: float, seed: int) -> int:
    """Run the soak test, print its failures, and return the exit code."""
    for name in ("tmp", "cache", "traces"):
        (folder / name).mkdir(parents=True)
    os.environ |= {"TMPDIR": str(folder / "tmp"), "XDG_CACHE_HOME": str(folder / "cache")}
    traces, store = write_traces(folder / "traces" / "again", 1), folder / "job.store"
    done(lambda: hta_sql.ingest(traces, store, run="again", jobs=1).close())
    (folder / "again.journal").write_text(
        '{"at": 0, "name": "again", "arguments": [1], "done": true, "may": {"again": [1]}}\n'
    )
    soak = Soak(folder, seed)
    soak.run(seconds)
    told: Counter[str] = Counter()
    if (folder / "told").exists():
        told.update(line.split(" ", 2)[2] for line in (folder / "told").read_text().splitlines())
    for kind, count in sorted(told.items()):
        say(f"{count:8,} {kind}")
    found = judged(soak)
    for line in found:
        say(line)
    say(f"seed {seed}: {'clean' if not found else 'NOT clean'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), float(sys.argv[2]), int(sys.argv[3])))
