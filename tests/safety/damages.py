"""Damage a store at random, and check that no answer is wrong without a word about the file.

Run as a program: ``python -m tests.safety.damages FOLDER ROUNDS SEED``. Each round damages one file
of a store with two runs: it flips a bit, zeroes a block, truncates or deletes the file, or swaps it
with another one. The files are the manifest, the catalog, and the Parquet files of each table,
derived table and materialized answer.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from pathlib import Path

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.store.catalog.materialize import materialize, materialize_answers
from hta_sql.store.disk.manifest import CATALOG, MANIFEST, read_manifest
from hta_sql.store.maintenance.verify import verify_store
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import write_job
from tests.shared_stores import ingest_only

WAYS = ("bit", "block", "truncation", "deletion", "swap")
RUNS = ("first", "second")
QUESTIONS = ("temporal_breakdown", "kernel_table")
"""Analyses whose answers are materialized."""

ANALYSES = (
    *("temporal_breakdown", "operator_table", "collective_waits", "comm_comp_overlap"),
    *("findings", "memory_peaks", "gpu_kernels_by_name"),
)
"""Analyses that are run after each damage."""

TRACE = Path(__file__).parents[1] / "traces" / "every_table.json"

Answers = dict[str, list[tuple[object, ...]]]
Truth = dict[tuple[str, str | None], list[tuple[object, ...]]]
"""Analysis and run (None: all) ─▶ rows."""


def trace(rank: int, duration: float) -> dict[str, object]:
    """Return a trace with two operators, each with a launch call, its kernel and a flow event."""
    events: list[dict[str, object]] = []
    for number in range(2):
        at = number * 1000.0
        shared = {"ph": "X", "pid": 1, "tid": 1, "ts": at}
        launch = {"correlation": number + 1}
        events += [
            shared | {"cat": "cpu_op", "name": "aten::mm", "dur": 50.0, "args": {}},
            shared
            | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5.0, "args": launch},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 10.0}
            | {"dur": duration, "args": launch | {"device": 0, "stream": 7}},
            {
                "ph": "s",
                "id": number + 1,
                "pid": 1,
                "tid": 1,
                "ts": at,
                "cat": "ac2g",
                "name": "ac2g",
            },
        ]
    return {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}


def make_store(folder: Path) -> Path:
    """Create a store with two runs of two ranks, materialized answers and an unpublished shard.

    Each rank of the first run has separate Parquet files. In the other runs, all ranks share files.
    """
    for number, run in enumerate(("first", "second", "third")):
        (folder / run).mkdir(parents=True)
        for rank in range(2):
            content = json.dumps(trace(rank, 100.0 + 10 * number + rank))
            (folder / run / f"rank{rank}.json").write_text(content)
    store = folder / "job.store"
    for rank in range(2):
        ingest_only(folder / "first" / f"rank{rank}.json", store, run="first", jobs=1)
    ingest_only(folder / "second", store, jobs=1)
    materialize_answers(store, QUESTIONS)
    hta_sql.ingest_shard(folder / "third", store, shard=(1, 2), jobs=1)
    hta_sql.open(store).close()
    return store


def answers(store: Path | str) -> Answers:
    """Return the rows of materialized analyses, a table and the run tags, grouped by run."""
    found: Answers = {}
    with hta_sql.open(store, threads=1) as opened:
        queries = [f"FROM {name}" for name in QUESTIONS]
        queries += ["SELECT run, rank, name, ts, dur, launch_id, op_id FROM gpu_ops"]
        queries += ["FROM run_tags"]
        for query in queries:
            result = opened.sql(query)
            at = result.columns.index("run")
            for row in sorted(result.rows(), key=repr):
                found.setdefault(f"{row[at]}", []).append((query, *row))
        for run in opened.runs():
            found.setdefault(run, [])
    return found


def make_rich_store(folder: Path) -> Path:
    """Create a store with two different runs that have files of many tables and derived tables."""
    store = folder / "rich.store"
    paths, _ = write_job(folder / "planted", PlantedJob(ranks=2, steps=3))
    ingest_only(paths, store, run=RUNS[0], jobs=1)
    ingest_only({0: str(TRACE)}, store, run=RUNS[1], jobs=1)
    materialize(store)
    materialize_answers(store, QUESTIONS)
    hta_sql.open(store).close()
    return store


def kinds_of(store: Path) -> list[str]:
    """Return the kinds of stored files: the manifest, the catalog, and the names of tables."""
    named = {name.split("/")[1] for name in read_manifest(store).named_files()}
    return [MANIFEST, CATALOG, *sorted(named)]


def files_of(store: Path, kind: str) -> list[Path]:
    """Return the files of a kind."""
    if kind in (MANIFEST, CATALOG):
        return [store / kind]
    names = sorted(read_manifest(store).named_files())
    return [store / name for name in names if name.split("/")[1] == kind]


def damage(chance: random.Random, store: Path, way: str, kind: str) -> list[Path]:
    """Damage a random file of a kind; return the changed files."""
    path = chance.choice(files_of(store, kind))
    content = bytearray(path.read_bytes())
    at = chance.randrange(len(content))
    if way == "swap":
        names = sorted(read_manifest(store).named_files())
        other = store / chance.choice([*names, MANIFEST, CATALOG])
        exchanged = other.read_bytes()
        replaced(other, bytes(content))
        replaced(path, exchanged)
        return [path, other]
    if way == "deletion":
        path.unlink()
        return [path]
    if way == "bit":
        content[at] ^= 1 << chance.randrange(8)
    elif way == "block":
        size = chance.choice((64, 512, 4096))
        content[at : at + size] = bytes(len(content[at : at + size]))
    else:
        content = content[:at]
    replaced(path, bytes(content))
    return [path]


def replaced(path: Path, content: bytes) -> None:
    """Replace a file without changing open catalogs and hard links to it."""
    path.unlink()
    path.write_bytes(content)


@contextmanager
def warnings() -> Iterator[list[str]]:
    """Collect the messages that are logged as warnings."""
    handler = BufferingHandler(1 << 20)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("hta_sql")
    logger.addHandler(handler)
    found: list[str] = []
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        found += [record.getMessage() for record in handler.buffer]


def truth_of(store: Path) -> Truth:
    """Return the answers of an intact store."""
    with hta_sql.open(store, threads=1) as opened:
        return {
            (name, run): opened.run(name, runs=[run] if run else None).rows()
            for name in ANALYSES
            for run in (None, *RUNS)
        }


def outcome_of(store: Path, truth: Truth, files: list[Path]) -> str:
    """Query a damaged store; return whether answers are equal, left out or refused.

    Args:
        store: The store, in which only these files differ from what was written.
        truth: Answers of the intact store.
        files: The damaged files.

    Raises:
        AssertionError: An answer is wrong, no message names a damaged file, or a run whose files
            are intact cannot be queried.
    """
    names = {path.name for path in files}
    whole = [run for run in RUNS if not any(f"run={run}" in path.parts for path in files)]
    seen, said = [], list[str]()
    with warnings() as warned:
        try:
            opened = hta_sql.open(store, threads=1)
        except HtaSqlError as refusal:
            said.append(str(refusal))
            assert MANIFEST in names or not whole, said
            seen.append("refused")
        else:
            with opened:
                seen += [_compared(opened, name, None, truth, said) for name in ANALYSES]
                for name in ANALYSES if set(seen) != {"equal"} else ():
                    found = [_compared(opened, name, run, truth, said) for run in whole]
                    assert set(found) <= {"equal"}, f"{name} of {whole}: {said}"
    worst = max(seen, key=["equal", "left out", "refused"].index)
    if worst != "equal":
        assert any(name in message for name in names for message in (*said, *warned)), said
    return worst


def _compared(
    opened: hta_sql.TraceStore, name: str, run: str | None, truth: Truth, said: list[str]
) -> str:
    """Run an analysis, and compare its rows with the truth."""
    try:
        rows = opened.run(name, runs=[run] if run else None).rows()
    except HtaSqlError as error:
        said.append(str(error))
        return "refused"
    if rows == truth[name, run]:
        return "equal"
    left = [of for of in RUNS if of in opened.runs()]
    assert len(left) < len(RUNS), f"{name} of {run} is wrong"
    assert rows == [row for of in left for row in truth[name, of]], f"{name} of {left} is wrong"
    return "left out"


def restore(store: Path, backup: Path) -> None:
    """Restore the store from its backup, with hard links to the files that never change."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(backup, store, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    copies = Path(source).name in {MANIFEST, CATALOG}
    (shutil.copy2 if copies else os.link)(source, target)


def rounds(folder: Path, count: int, seed: int) -> Counter[str]:
    """Damage and query a store repeatedly; return the number of each outcome by kind of damage."""
    folder.mkdir(parents=True, exist_ok=True)
    store, backup = make_rich_store(folder), folder / "backup"
    truth = truth_of(store)
    assert not verify_store(store, deep=True).faults
    shutil.copytree(store, backup)
    kinds = kinds_of(store)
    told: Counter[str] = Counter()
    for number in range(count):
        chance = random.Random(seed * 1_000_003 + number)
        restore(store, backup)
        way, kind = chance.choice(WAYS), kinds[(number + seed) % len(kinds)]
        files: list[Path] = []
        try:
            files = damage(chance, store, way, kind)
            told[f"{way}: {outcome_of(store, truth, files)}"] += 1
        except Exception as error:
            names = ", ".join(path.relative_to(store).as_posix() for path in files)
            raise AssertionError(f"seed {seed}, round {number}: {way} of {names}") from error
    return told


if __name__ == "__main__":
    found = rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write("".join(f"{count:6,} {how}\n" for how, count in sorted(found.items())))
