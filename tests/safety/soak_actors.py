"""Writers and readers of a soak test, each in a process that may be killed at any moment."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

import hta_sql
from hta_sql.errors import HtaSqlError, RankError
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.catalog.run_tags import tag_runs
from hta_sql.store.disk.manifest import CATALOG, read_manifest
from hta_sql.store.maintenance.edits import remove_runs, rename_run
from tests.safety.soak_truth import (
    ANYTHING,
    Content,
    Journal,
    Truth,
    content_of,
    note,
    write_traces,
    wrong,
)

WAIT_S = 600
"""Timeout of the store lock [s], high because eleven other processes share the two cores."""

RUNS_AT_A_TIME = 3
"""Number of runs above which a writer removes its oldest run."""


class Writer:
    """Actor that changes the store repeatedly, and continues where a killed writer stopped."""

    def __init__(self, folder: Path, role: str, chance: random.Random) -> None:
        self.folder, self.store, self.chance = folder, folder / "job.store", chance
        self.journal = Journal(folder / f"{role}.journal")
        self.role = role

    def next(self) -> None:
        """Complete an interrupted change, or start a new one."""
        name, arguments = self.journal.unfinished or getattr(self, f"choose_{self.role}")()
        self.journal.unfinished = name, arguments
        getattr(self, name)(*arguments)
        self.journal.unfinished = None

    def there(self, prefix: str) -> list[str]:
        """Return the existing runs of this writer, oldest first."""
        names = [key for key, may in self.journal.state.items() if may != [None]]
        return sorted(
            (n for n in names if n.startswith(prefix)), key=lambda n: int(n.split("-")[1])
        )

    def made(self, prefix: str) -> int:
        """Count the runs that this writer has ingested so far."""
        return sum(key.startswith(prefix) for key in self.journal.state)

    # Choose the next change of each role.

    def choose_new(self) -> tuple[str, list[Any]]:
        """Choose to add a new run, or to remove an old one."""
        if len(there := self.there("new-")) > RUNS_AT_A_TIME:
            return "remove", [there[0]]
        return "add", [f"new-{self.made('new-')}", self.chance.randrange(50)]

    def choose_again(self) -> tuple[str, list[Any]]:
        """Choose to ingest the run ``again`` again, usually from changed traces."""
        (before,) = self.journal.state.get("again", [0])
        assert isinstance(before, int)
        return "again", [before + 1 if self.chance.random() < 0.8 else before]

    def choose_shards(self) -> tuple[str, list[Any]]:
        """Choose to ingest a run in two shards, or to remove an old one."""
        if len(there := self.there("shard-")) > RUNS_AT_A_TIME:
            return "remove", [there[0]]
        return "shards", [f"shard-{self.made('shard-')}", self.chance.randrange(50)]

    def choose_edits(self) -> tuple[str, list[Any]]:
        """Choose any other change, such as a rename or damage."""
        if self.journal.state.get("damage", [None]) != [None]:
            return "restore", []
        if not self.journal.state.get("fixed"):
            return "add", ["fixed", 7]
        if not self.there("name-"):
            return "add", ["name-0", 8]
        what = self.chance.choice(["keep", "keep", "tag", "rename", "catalog", "damage"])
        if what == "rename":
            (run,) = self.there("name-")
            return what, [run, f"name-{1 - int(run.split('-')[1])}"]
        damages = ["catalog", "materialized", "parquet"]
        return what, [self.chance.choice(damages)] if what == "damage" else []

    # Apply a change. Each change may be restarted from its beginning.

    def add(self, run: str, content: int) -> None:
        """Ingest a run."""
        traces = write_traces(self.folder / "traces" / f"{self.role}-{content}", content)
        with self.journal.change("add", [run, content], {run: content}):
            hta_sql.ingest(traces, self.store, run=run, jobs=1, lock_timeout=WAIT_S).close()

    def again(self, content: int) -> None:
        """Ingest the run ``again`` with new content."""
        with self.journal.change("again", [content], {"again": content}):
            traces = write_traces(self.folder / "traces" / "again", content)
            hta_sql.ingest(traces, self.store, run="again", jobs=1, lock_timeout=WAIT_S).close()

    def shards(self, run: str, content: int) -> None:
        """Ingest a run in two shards, and publish them."""
        traces = write_traces(self.folder / "traces" / f"{self.role}-{content}", content)
        with self.journal.change("shards", [run, content], {run: content}):
            for number in (1, 2):
                options: dict[str, Any] = {"run": run, "jobs": 1, "lock_timeout": WAIT_S}
                hta_sql.ingest_shard(traces, self.store, shard=(number, 2), **options)
            hta_sql.publish(self.store, lock_timeout=WAIT_S).close()

    def remove(self, run: str) -> None:
        """Remove a run."""
        with self.journal.change("remove", [run], {run: None}), suppress(RankError):
            remove_runs(self.store, run, lock_timeout=WAIT_S)

    def rename(self, run: str, name: str) -> None:
        """Rename a run, unless it already has the new name."""
        with self.journal.change("rename", [run, name], {run: None, name: 8}), suppress(RankError):
            rename_run(self.store, run, name, lock_timeout=WAIT_S)

    def tag(self) -> None:
        """Tag the run ``fixed`` with a random note."""
        with self.journal.change("tag", [], {}):
            tags = {"note": str(self.chance.randrange(1000))}
            tag_runs(self.store, "fixed", tags, lock_timeout=WAIT_S)

    def keep(self) -> None:
        """Materialize answers."""
        with self.journal.change("keep", [], {}):
            materialize_answers(
                self.store, ("temporal_breakdown", "kernel_table"), lock_timeout=WAIT_S
            )

    def catalog(self) -> None:
        """Rebuild the catalog."""
        with self.journal.change("catalog", [], {}):
            build_catalog(self.store)

    def damage(self, what: str) -> None:
        """Damage a file in a way that is detected when the store is opened."""
        becomes: dict[str, Content] = {"damage": what}
        if what == "parquet":
            becomes["fixed"] = ANYTHING
        with self.journal.change("damage", [what], becomes), suppress(HtaSqlError):
            manifest = read_manifest(self.store)
            files = {"catalog": [CATALOG]}
            files["materialized"] = [one.path for one in manifest.materialized if one.path]
            entries = [entry for entry in manifest.entries if entry.run == "fixed"]
            files["parquet"] = [f["path"] for e in entries for f in e.files.values()]
            for name in self.chance.sample(files[what], min(1, len(files[what]))):
                path, partial = self.store / name, self.folder / "damaged"
                with suppress(FileNotFoundError):  # another process has replaced the file
                    content = path.read_bytes()
                    partial.write_bytes(content[: self.chance.randrange(len(content))])
                    if what in ("materialized", "parquet") and self.chance.random() < 0.5:
                        path.unlink()
                    elif path.exists():
                        partial.replace(path)

    def restore(self) -> None:
        """Ingest the run ``fixed`` again, and write the computed tables and the catalog again."""
        becomes: dict[str, Content] = {"damage": None}
        if self.journal.state.get("fixed"):
            becomes["fixed"] = 7
        with self.journal.change("restore", [], becomes):
            if "fixed" in becomes:
                traces = write_traces(self.folder / "traces" / f"{self.role}-7", 7)
                options: dict[str, Any] = {"run": "fixed", "jobs": 1, "lock_timeout": WAIT_S}
                hta_sql.ingest(traces, self.store, force=True, **options).close()
            materialize_answers(self.store, lock_timeout=WAIT_S)
            build_catalog(self.store)


WRITERS = ("new", "again", "shards", "edits")
READERS = ("forever", "forever", "long", "long", "short", "short", "plain", "plain")
"""Kinds of readers. The ``forever`` readers are never killed, and their memory is measured."""

Ask = Callable[[str], list[tuple[Any, ...]]]


class Reader:
    """Actor that queries the store repeatedly and checks each answer."""

    def __init__(
        self, folder: Path, kind: str, chance: random.Random, count: Callable[[], None]
    ) -> None:
        self.folder, self.store, self.kind, self.chance = folder, folder / "job.store", kind, chance
        self.truth, self.count = Truth(folder), count

    def next(self) -> None:
        """Open the store, query it once or repeatedly, and close it."""
        since = time.monotonic()
        try:
            if self.kind == "plain":
                with duckdb.connect(str(self.store / CATALOG), read_only=True) as con:
                    self.asked(lambda query: con.execute(query).fetchall(), since)
                return
            until = since + {"short": 0.0, "long": self.chance.uniform(5, 30)}.get(self.kind, 1e9)
            with hta_sql.open(self.store, threads=1) as opened:
                self.asked(lambda query: opened.sql(query).rows(), since)
                while time.monotonic() < until:
                    time.sleep(self.chance.uniform(0, 1))
                    self.asked(lambda query: opened.sql(query).rows(), since)
                    self.asked_of_a_run(opened, since)
        except (HtaSqlError, duckdb.Error) as error:
            if not self.is_clear(error, since):
                raise

    def asked(self, ask: Ask, since: float) -> None:
        """Run a random query on all runs, and check the content of each run."""
        query = self.chance.choice(QUERIES)
        found: dict[str, list[tuple[int, int, int]]] = {}
        for run, *row in ask(query):
            found.setdefault(run, []).append(tuple(row))
        seen: dict[str, Content] = {run: content_of(rows) for run, rows in found.items()}
        may = self.truth.may_be(since)
        if faults := wrong(seen, may):
            note(self.folder / "wrong", f"{self.kind} {query}: {faults}; {seen}")
        if {"name-0", "name-1"} <= seen.keys():
            note(self.folder / "wrong", f"{self.kind} {query}: a run has two names; {seen}")
        self.count()

    def asked_of_a_run(self, opened: hta_sql.TraceStore, since: float) -> None:
        """Query one run by name, even if it may have been removed."""
        run = self.chance.choice([*opened.runs(), "again"])
        try:
            rows = opened.run("kernel_table", runs=[run]).arrow().to_pylist()
            seen: Content = content_of((r["rank"], r["kernel_count"], r["sum_ns"]) for r in rows)
        except RankError:
            seen = None
        allowed = self.truth.may_be(since).get(run, [None])
        if seen not in allowed and ANYTHING not in allowed:
            note(self.folder / "wrong", f"{self.kind} {run} is {seen}, and may be {allowed}")
        self.count()

    def is_clear(self, error: Exception, since: float) -> bool:
        """Return whether this error is expected in a reader, and note its kind."""
        text = str(error)
        damage = [what for what in self.truth.may_be(since).get("damage", []) if what]
        kind = None
        if self.kind == "plain" and damage:
            kind = "DuckDB alone, of a damaged store"
        elif self.kind == "plain" and isinstance(error, duckdb.IOException) and ".parquet" in text:
            # A file is deleted two changes after it was replaced. Only a TraceStore reopens the
            # store.
            kind = "DuckDB alone, of files that went since its catalog was opened"
        elif (
            isinstance(error, hta_sql.StoreError) and "while it was being opened. Try again" in text
        ):
            kind = "replaced whenever it was opened"
        if kind:
            note(self.folder / "told", f"{self.kind}: {kind}")
        return bool(kind)


QUERIES = (
    "SELECT run, rank, count(*), sum(dur)::BIGINT FROM gpu_ops GROUP BY ALL",
    "SELECT run, rank, 3, compute_ns FROM temporal_breakdown",
    "SELECT run, rank, kernel_count, sum_ns FROM kernel_table",
)


def act(folder: Path, seed: int, number: int, name: str, counts: memoryview[int]) -> None:
    """Run a writer or a reader until its process is killed."""
    chance = random.Random(seed)

    def count() -> None:
        counts[number] += 1

    actor = Writer(folder, name, chance) if name in WRITERS else Reader(folder, name, chance, count)
    thinks = 0.2 if isinstance(actor, Writer) else 1.0
    while True:
        try:
            actor.next()
            if isinstance(actor, Writer):
                count()
        except hta_sql.StoreDamagedError as error:
            # A writer gets this error if the store is damaged, and tries again once it is restored.
            damage = Truth(folder).may_be(time.monotonic() - WAIT_S).get("damage", [])
            if isinstance(actor, Reader) or "parquet" not in map(str, damage):
                note(folder / "failures", traceback.format_exc())
            note(folder / "told", f"{name} (writer): {type(error).__name__}")
        except Exception:  # noqa: BLE001 - each of them is a finding
            note(folder / "failures", f"{name}: {traceback.format_exc()}")
        time.sleep(chance.uniform(0, thinks))
