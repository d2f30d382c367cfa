"""The target of an ingest: store, run, tags, and writing ranks under the store's lock."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hta_sql.store.catalog.materialize import materialize_answers, publish
from hta_sql.store.catalog.run_tags import tag_runs
from hta_sql.store.disk.disk_space import is_disk_full, reporting_full_disk
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import Manifest, RankEntry, file_paths, manifest_or_empty
from hta_sql.store.disk.orphaned_files import Unfinished, remove_orphaned_files, unfinished
from hta_sql.store.disk.reports import IngestReport
from hta_sql.store.disk.spans import check_spans
from hta_sql.text import counted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Contents:
    """The manifest of a store, and the ranks whose files are all present."""

    manifest: Manifest
    published: list[RankEntry] = field(default_factory=list)
    unpublished: list[RankEntry] = field(default_factory=list)
    """Ranks that an interrupted ingest of the run had read; the next ingest reuses them."""


@dataclass(frozen=True)
class IngestTarget:
    """Target of an ingest, and how it shares the store with other writers.

    Attributes:
        folder: The store.
        run: Name of the run.
        tags: Tags to add to the run.
        lock_timeout: Time to wait for another writer [s].
        all_or_nothing: Whether an interrupted ingest discards the ranks that it has read.
        materialize: Whether to materialize the small answers after the ingest.
        derived: Whether to compute the derived tables.
    """

    folder: StoreFolder
    run: str
    tags: dict[str, str]
    lock_timeout: float
    all_or_nothing: bool = False
    materialize: bool = False
    derived: bool = True

    def contents(self) -> Contents:
        """Read the manifest, and determine which ranks of the store are complete."""
        manifest = manifest_or_empty(self.folder)
        left = [] if self.all_or_nothing else unfinished(self.folder, self.run)
        return Contents(manifest, intact(self.folder, manifest.entries), intact(self.folder, left))

    @contextmanager
    def locked(self) -> Iterator[RankWriter]:
        """Acquire the store's lock, and yield a writer of ranks."""
        with store_lock(self.folder, self.lock_timeout):
            yield RankWriter(self, self.contents())

    def finish(self, report: IngestReport) -> None:
        """Tag the runs if no rank was published, and materialize answers if requested.

        Call without holding the store's lock.
        """
        if self.tags and not (report.results or report.resumed):
            tag_runs(self.folder, report.runs, self.tags, lock_timeout=self.lock_timeout)
        if self.materialize:
            materialize_answers(self.folder, runs=report.runs, lock_timeout=self.lock_timeout)


class RankWriter:
    """Adds ranks to a store: interrupted reading can be resumed, and publishing is atomic.

    Use only under the store's lock.

    Args:
        target: The target of the ingest.
        contents: Contents of the store, read under the lock.
    """

    def __init__(self, target: IngestTarget, contents: Contents) -> None:
        self.contents = contents
        self._target = target
        self._folder = target.folder
        self._unfinished = Unfinished(target.folder, target.run)
        self._resumed: list[RankEntry] = []

    @contextmanager
    def adding(self, resumed: Sequence[RankEntry]) -> Iterator[None]:
        """Clean up after earlier ingests, then let the caller add ranks in this context.

        Args:
            resumed: Ranks that an interrupted ingest has read and that this ingest publishes.

        Raises:
            StoreError: The disk is full; the files written in this context are deleted.
        """
        with reporting_full_disk(self._folder, self._remove_unnamed):
            self._resumed = list(resumed)
            self._unfinished.keep(resumed)
            remove_orphaned_files(self._folder, self.contents.manifest)
            yield

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """If this context is interrupted, save the ranks added in it, unless ``all_or_nothing``."""
        try:
            yield
        except BaseException as error:
            if not self._target.all_or_nothing and not is_disk_full(error):
                self._unfinished.save()
                kept = unfinished(self._folder, self._target.run)
                if kept:
                    log.warning(
                        "Interrupted: %s stored but not published; run the same ingest to resume.",
                        f"{counted(len(kept), 'rank')} {'is' if len(kept) == 1 else 'are'}",
                    )
            raise

    def add(self, entry: RankEntry) -> None:
        """Add a rank that was read; it becomes visible when it is published."""
        if not self._target.all_or_nothing:
            self._unfinished.add(entry)

    def publish(self, entries: Sequence[RankEntry], runs: Collection[str]) -> None:
        """Publish the ranks that were read or resumed, and tag their runs.

        Args:
            entries: The ranks that were read.
            runs: The runs of the traces.

        Raises:
            TraceError: The ranks cannot be spans of one run.
        """
        if entries or self._resumed:
            now = self.contents.manifest.with_entries([*self._resumed, *entries])
            check_spans(now.entries)
            settle(self._folder, entries)
            tagged = set(runs).intersection(now.runs())
            now = now.with_tags(tagged, self._target.tags)
            publish(self._folder, now, derived=self._target.derived)
            self._unfinished.keep([])

    def _remove_unnamed(self) -> None:
        remove_orphaned_files(self._folder, manifest_or_empty(self._folder))


def intact(folder: StoreFolder, entries: Sequence[RankEntry]) -> list[RankEntry]:
    """Return the entries whose files all exist with the recorded size; others are incomplete."""
    files = [[(file["path"], file["bytes"]) for file in entry.files.values()] for entry in entries]
    there = folder.sizes([path for named in files for path, _ in named]).items()
    return [entry for entry, named in zip(entries, files, strict=True) if there >= set(named)]


def settle(folder: StoreFolder, entries: Sequence[RankEntry]) -> None:
    """Fsync the files of entries before a manifest references them."""
    folder.settle(file_paths(entries))
