"""Files that no manifest references: resume records of an interrupted ingest, and orphaned files.

``<store>/unfinished/<run>.<id>.json`` lists the files of ranks that an ingest has read but not
published. Running the same ingest again resumes from them; readers ignore them. Any other
unreferenced file was left by a killed write or replaced by a later one, and the next writer deletes
it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable, Sequence

from hta_sql.store.disk.digests import is_damaged, with_checksum
from hta_sql.store.disk.folder import StoreFolder
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
    file_paths,
)
from hta_sql.store.disk.shard_files import protected_files
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)

UNFINISHED = "unfinished"
SAVE_S = 2.0
"""Minimum time between two resume records [s]; repeating less work than this is cheaper."""


class Unfinished:
    """The ranks of a run that were read but not published. Use only under the store's lock.

    Args:
        folder: The store.
        run: Name that the ingest gives to the run.
    """

    def __init__(self, folder: StoreFolder, run: str) -> None:
        self._folder, self._run = folder, run
        self._new: list[RankEntry] = []
        self._saved_at = time.monotonic()

    def add(self, entry: RankEntry) -> None:
        """Add a rank that was read, and save if the last record is older than :data:`SAVE_S`."""
        self._new.append(entry)
        if time.monotonic() - self._saved_at >= SAVE_S:
            self.save()

    def save(self) -> int:
        """Write the ranks that were read since the last save; return how many."""
        new, self._new = self._new, []
        if new:
            self._folder.settle(file_paths(new))
            content = {"schema_version": SCHEMA_VERSION, "entries": new}
            name = f"{UNFINISHED}/{self._run}.{uuid.uuid4().hex}.json"
            self._folder.replace(name, with_checksum(content))
        self._saved_at = time.monotonic()
        return len(new)

    def keep(self, entries: Sequence[RankEntry]) -> None:
        """Discard all ranks except these."""
        records = [name for name in _records(self._folder) if _run_of(name) == self._run]
        if records:
            self._new = list(entries)
            self.save()
            self._folder.remove(records)
            self._folder.remove_empty(UNFINISHED)


def unfinished(folder: StoreFolder, run: str | None = None) -> list[RankEntry]:
    """List the ranks that were read but not published, of one run or of all runs."""
    found: list[RankEntry] = []
    for name in _records(folder):
        if run in (None, _run_of(name)):
            try:
                found.extend(_parsed(folder.read(name)))
            except FileNotFoundError:
                continue  # its ingest finished after the listing
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                log.info("No ranks can be resumed from %r: %r.", folder.path(name), error)
    return found


def unfinished_files(folder: StoreFolder) -> set[str]:
    """Return the files of ranks that were read but not published."""
    return file_paths(unfinished(folder))


def _parsed(content: bytes) -> Iterable[RankEntry]:
    values = json.loads(content)
    if values["schema_version"] != SCHEMA_VERSION or is_damaged(content, values):
        raise ValueError("written by another version, or damaged")
    return [entry_from(entry) for entry in values["entries"]]


def _records(folder: StoreFolder) -> list[str]:
    names = folder.files(UNFINISHED)
    return [n for n in names if n.endswith(".json") and not n.rpartition("/")[2].startswith(".")]


def _run_of(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".json").rpartition(".")[0]


def remove_orphaned_files(folder: StoreFolder, manifest: Manifest) -> int:
    """Delete orphaned files; return their number. Call only under the store's lock.

    Orphaned files were left by a killed ingest, or replaced by the previous ingest. The previous
    ingest did not delete the files it replaced, because open readers could still use them.
    """
    # List the files first. A shard that starts later writes its shard file before any other file,
    # so its files are not in the list.
    present = folder.files("")
    named = manifest.named_files() | protected_files(folder, present) | unfinished_files(folder)
    leftovers = [name for name in present if _is_orphaned(name, named)]
    folder.remove(leftovers)
    if leftovers:
        log.info("Removed %d files of an earlier ingest from %s.", len(leftovers), folder.root)
    return len(leftovers)


def _is_orphaned(name: str, named: set[str]) -> bool:
    """Return whether an unreferenced file was written by hta_sql; other files are never deleted."""
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
