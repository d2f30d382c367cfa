"""Files that no manifest names: resume records of an interrupted ingest, and orphaned files to delete.

``<store>/unfinished/<run>.<id>.json`` names the files of ranks that an ingest has read and not published:
the same ingest, run again, goes on from there. Readers do not look at them. Any other file that nothing
names was left by a killed write or replaced by a later one, and the next writer deletes it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable, Sequence

from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.integrity import is_damaged, with_checksum
from hta_sql.store.disk.manifest import (
    CATALOG,
    MANIFEST,
    RELATIVE_CATALOG,
    SCHEMA_VERSION,
    SHARDS,
    TABLES,
    Manifest,
    RankEntry,
    entry_from,
)
from hta_sql.store.disk.shard_files import protected_files
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)

UNFINISHED = "unfinished"
SAVE_S = 2.0
"""Time between two records: what is read in less is not worth one, and is read again."""


class Unfinished:
    """The ranks of a run that are read and not published. Only under the lock of the store.

    Args:
        folder: The store.
        run: What the ingest calls the run.
    """

    def __init__(self, folder: StoreFolder, run: str) -> None:
        self._folder, self._run = folder, run
        self._new: list[RankEntry] = []
        self._saved_at = time.monotonic()

    def add(self, entry: RankEntry) -> None:
        """Remember a rank that was read."""
        self._new.append(entry)
        if time.monotonic() - self._saved_at >= SAVE_S:
            self.save()

    def save(self) -> int:
        """Write down what was read since the last time; returns how many ranks."""
        new, self._new = self._new, []
        if new:
            self._folder.settle(file["path"] for entry in new for file in entry.files.values())
            content = {"schema_version": SCHEMA_VERSION, "entries": new}
            name = f"{UNFINISHED}/{self._run}.{uuid.uuid4().hex}.json"
            self._folder.replace(name, with_checksum(content))
        self._saved_at = time.monotonic()
        return len(new)

    def keep(self, entries: Sequence[RankEntry]) -> None:
        """Forget all ranks but these."""
        records = [name for name in _records(self._folder) if _run_of(name) == self._run]
        if records:
            self._new = list(entries)
            self.save()
            self._folder.remove(records)
            self._folder.remove_empty(UNFINISHED)


def unfinished(folder: StoreFolder, run: str | None = None) -> list[RankEntry]:
    """List the ranks that are read and not published, of one run or of all."""
    found: list[RankEntry] = []
    for name in _records(folder):
        if run in (None, _run_of(name)):
            try:
                found.extend(_parsed(folder.read(name)))
            except FileNotFoundError:
                continue  # its ingest has ended since it was listed
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                log.info("%r names no ranks that can be taken over: %r.", folder.path(name), error)
    return found


def unfinished_files(folder: StoreFolder) -> set[str]:
    """Collect the files of ranks that are read and not published."""
    return {file["path"] for entry in unfinished(folder) for file in entry.files.values()}


def _parsed(content: bytes) -> Iterable[RankEntry]:
    values = json.loads(content)
    if values["schema_version"] != SCHEMA_VERSION or is_damaged(content, values):
        raise ValueError("another version, or damaged")
    return [entry_from(entry) for entry in values["entries"]]


def _records(folder: StoreFolder) -> list[str]:
    names = folder.files(UNFINISHED)
    return [n for n in names if n.endswith(".json") and not n.rpartition("/")[2].startswith(".")]


def _run_of(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".json").rpartition(".")[0]


def remove_orphaned_files(folder: StoreFolder, manifest: Manifest) -> int:
    """Delete files that nothing names; returns how many there were. Only under the lock.

    They come from a killed ingest, or were replaced by the previous one: readers
    that opened the store before it could still use them until now.
    """
    # Listed first: a shard that starts later is announced before it writes, and not listed here.
    present = folder.files("")
    named = manifest.named_files() | protected_files(folder, present) | unfinished_files(folder)
    leftovers = [name for name in present if _is_orphaned(name, named)]
    folder.remove(leftovers)
    if leftovers:
        log.info("Removed %d files of an earlier ingest from %s.", len(leftovers), folder.root)
    return len(leftovers)


def _is_orphaned(name: str, named: set[str]) -> bool:
    """Judge only what this program writes: somebody's notes in the folder are not ours."""
    if name in named:
        return False
    top, _, last = name.rpartition("/")
    if top.startswith(f"{TABLES}/"):
        return True
    if top == SHARDS:
        return False
    return last.startswith((f".{CATALOG}.", f".{RELATIVE_CATALOG}.", f".{MANIFEST}.")) or (
        last.startswith(".") and last.endswith(PARTIAL)
    )
