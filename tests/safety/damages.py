"""Damage a store at random, and check that no answer is wrong and no command crashes.

Run as a program: ``python -m tests.safety.damages FOLDER ROUNDS SEED``. Each round damages a
Parquet file, the manifest, the catalog or a shard: it flips a bit, zeroes a block, truncates or
deletes the file, copies another file over it, or exchanges the two.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import hta_sql
from hta_sql.api import repair_store
from hta_sql.errors import HtaSqlError
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.disk.manifest import CATALOG, MANIFEST
from hta_sql.store.maintenance.verify import verify_store
from tests.shared_stores import ingest_only

WAYS = ("bit", "block", "truncation", "copy", "deletion", "exchange")
TARGETS = ("parquet", "parquet", "materialized", "manifest", "catalog", "shard")
QUESTIONS = ("temporal_breakdown", "kernel_table")

Answers = dict[str, list[tuple[object, ...]]]


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


def files_of(store: Path, target: str) -> list[Path]:
    """Return the files to choose from when damaging a target such as the manifest."""
    if target in ("manifest", "catalog"):
        return [store / (MANIFEST if target == "manifest" else CATALOG)]
    if target == "shard":
        shard = next(store.glob("shards/*.json"))
        named = [
            f["path"] for e in json.loads(shard.read_text())["entries"] for f in e["files"].values()
        ]
        return [shard, shard, *sorted(store / name for name in named)]
    values = json.loads((store / MANIFEST).read_text())
    if target == "materialized":
        return sorted(store / one["path"] for one in values["materialized"] if one["path"])
    return sorted(
        store / file["path"] for entry in values["entries"] for file in entry["files"].values()
    )


def damage(chance: random.Random, store: Path, way: str, target: str) -> str:
    """Damage a random file of a target; return its path and the kind of damage."""
    files = files_of(store, target)
    path = chance.choice(files)
    content = bytearray(path.read_bytes())
    at = chance.randrange(len(content))
    other = chance.choice(files)
    if way == "bit":
        content[at] ^= 1 << chance.randrange(8)
    elif way == "block":
        size = chance.choice((64, 512, 4096))
        content[at : at + size] = bytes(len(content[at : at + size]))
    elif way == "truncation":
        content = content[:at]
    elif way in {"copy", "exchange"}:
        exchanged, content = bytes(content), bytearray(other.read_bytes())
        if way == "exchange" and other != path:
            replaced(other, exchanged)
    if way == "deletion":
        path.unlink()
    else:
        replaced(path, bytes(content))
    return f"{way} of {path.relative_to(store)} at {at:,}"


def replaced(path: Path, content: bytes) -> None:
    """Replace a file without changing open catalogs and hard links to it."""
    path.unlink()
    path.write_bytes(content)


def every_row(store: Path) -> Answers:
    """Return the rows of all tables and materialized analyses, by table and run."""
    found: Answers = {}
    with hta_sql.open(store, threads=1) as opened:
        names = [table.name for table in opened.library.tables]
        for name in (*names, *QUESTIONS, "matched_collectives"):
            is_analysis = name in QUESTIONS
            result = opened.run(name) if is_analysis else opened.table(name)
            at = result.columns.index("run") if "run" in result.columns else None
            for row in sorted(result.rows(), key=repr):
                found.setdefault(f"{name} {'' if at is None else row[at]}", []).append(row)
    return found


def is_right_or_named(store: Path, whole: Answers, path: Path, messages: Callable[[], str]) -> bool:
    """Return whether every answer is correct or a message names the damaged file.

    Args:
        store: A damaged store.
        whole: Its answers before the damage, from :func:`every_row`.
        path: The damaged file.
        messages: Returns the warnings logged so far.

    Raises:
        AssertionError: An answer is wrong.
    """
    try:
        found = every_row(store)
    except HtaSqlError as error:
        return path.name in f"{error} {messages()}"
    assert found.keys() <= whole.keys()
    assert all(rows == whole[of] for of, rows in found.items()), "an answer is wrong"
    return found == whole or path.name in messages()


def survives(store: Path, whole: Answers, *, has_sources: bool, quick: bool = False) -> str:
    """Verify, repair and query a damaged store; return the outcome.

    Raises:
        AssertionError: An answer is wrong, or the repair fails.
    """
    faults = verify_store(store).faults
    if not faults:
        assert answers(store) == whole, "an answer is wrong and nothing was found"
        return "no harm"
    with suppress(HtaSqlError):  # a message, and no traceback
        _ = quick or answers(store)
    done = repair_store(store)
    lost = {run for run, _ in done.aside}
    assert not (has_sources and lost), done.aside
    assert quick or not verify_store(store).faults, "it was not mended"
    assert answers(store) == {run: rows for run, rows in whole.items() if run not in lost}
    return "set aside" if lost else "mended"


def restore(store: Path, backup: Path) -> None:
    """Restore the store from its backup, with hard links to the files that never change."""
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(backup, store, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    copies = Path(source).name in {MANIFEST, CATALOG}
    (shutil.copy2 if copies else os.link)(source, target)


def rounds(folder: Path, count: int, seed: int) -> Counter[str]:
    """Damage and repair a store repeatedly; return the number of each outcome by damaged target."""
    store, backup = make_store(folder), folder / "backup"
    whole = answers(store)
    assert not verify_store(store, deep=True).faults
    shutil.copytree(store, backup)
    told: Counter[str] = Counter()
    for number in range(count):
        chance = random.Random(seed + number)
        restore(store, backup)
        way, target = chance.choice(WAYS), chance.choice(TARGETS)
        has_sources = chance.random() < 0.5
        hidden = folder / "hidden"
        if not has_sources:
            hidden.mkdir(exist_ok=True)
            for run in ("first", "second"):
                (folder / run).rename(hidden / run)
        what = "no damage"
        try:
            what = damage(chance, store, way, target)
            told[f"{target}: {survives(store, whole, has_sources=has_sources)}"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed + number}: {what}") from error
        finally:
            if not has_sources:
                for run in ("first", "second"):
                    (hidden / run).rename(folder / run)
    return told


if __name__ == "__main__":
    found = rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write("".join(f"{count:6,} {how}\n" for how, count in sorted(found.items())))
