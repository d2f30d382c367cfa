"""Shards of a run: written by jobs that share nothing but the store, then published together."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from hta_sql.errors import StoreError
from hta_sql.store.catalog.ingest_target import IngestTarget, intact, settle
from hta_sql.store.catalog.materialize import materialize_answers, publish
from hta_sql.store.disk import remote_lock
from hta_sql.store.disk.disk_space import reporting_full_disk
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.disk.manifest import (
    SHARDS,
    TABLES,
    Manifest,
    RankEntry,
    Store,
    file_paths,
    manifest_or_empty,
)
from hta_sql.store.disk.orphaned_files import remove_orphaned_files
from hta_sql.store.disk.reports import PublishReport
from hta_sql.store.disk.shard_files import (
    Shard,
    read_shards,
    run_of_shard,
    shard_name,
    write_shard,
)
from hta_sql.store.disk.spans import check_spans
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)

_NAME = re.compile(r"^(.*)\.(\d+)-of-(\d+)$")


class ShardWriter:
    """Updates the file of a shard after each rank, so that a killed job can resume.

    Args:
        folder: The store.
        shard: The shard, with the ranks that an earlier job of the shard has read.
    """

    def __init__(self, folder: StoreFolder, shard: Shard) -> None:
        self.shard = shard
        self._folder = folder
        write_shard(folder, shard)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Let the caller add ranks in this context.

        Raises:
            StoreError: The disk is full; the files written in this context are deleted.
        """
        with reporting_full_disk(self._folder, self._remove_unnamed):
            yield

    def add(self, entry: RankEntry) -> None:
        """Add a rank that was read."""
        self.shard = self.shard.with_entries([entry])
        write_shard(self._folder, self.shard)

    def finish(self, failures: list[str]) -> None:
        """Mark the shard as complete.

        Args:
            failures: Messages about the traces that could not be read.
        """
        settle(self._folder, self.shard.entries)
        self.shard = replace(self.shard, complete=True, failures=failures)
        write_shard(self._folder, self.shard)

    def _remove_unnamed(self) -> None:
        """Delete the files that this job wrote for ranks that it did not finish."""
        named = file_paths(self.shard.entries)
        mine = (self.shard.writer, f".{self.shard.writer}")
        names = set(self._folder.files(TABLES)) - named
        self._folder.remove([n for n in names if n.rpartition("/")[2].startswith(mine)])


@contextmanager
def locked_shard(target: IngestTarget, number: int, of: int) -> Iterator[list[RankEntry]]:
    """Acquire the lock of a shard; yield the ranks that an earlier job of the shard has read."""
    folder, name = target.folder, shard_name(target.run, number, of)
    with store_lock(folder, target.lock_timeout, _lock_of(name)):
        shards = [shard for shard in read_shards(folder) if shard.name == name]
        yield intact(folder, [entry for shard in shards for entry in shard.entries])


def publish_shards(
    store: Store,
    *,
    run: str | None = None,
    expect: int | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
    materialize: bool = False,
) -> PublishReport:
    """Merge the complete shards into the manifest; see :func:`hta_sql.publish`.

    Args:
        store: The store.
        run: Publish only the shards of this run; None: those of all runs.
        expect: Required number of shards.
        lock_timeout: Time to wait for another ingest that is writing the store [s].
        materialize: Whether to materialize the small answers.

    Raises:
        StoreError: Expected shards are missing, or there are no shards.
    """
    folder = store_folder(store)
    with store_lock(folder, lock_timeout):
        manifest = manifest_or_empty(folder)
        of_run = [shard for shard in read_shards(folder) if run in (None, shard.run)]
        shards = _without_lost(folder, of_run)
        earlier = [name for name in manifest.published if run in (None, run_of_shard(name))]
        missing = _missing(shards, earlier, expect)
        complete = [shard for shard in shards if shard.complete]
        if expect and missing:
            raise StoreError(
                f"{len(missing)} of {expect} shards are missing in {folder.root!r}: "
                f"{', '.join(missing[:20])}{' ...' if len(missing) > 20 else ''}. Nothing was "
                "published. Run their jobs again; they skip ranks that they have already read."
            )
        if not complete and not manifest.published:
            raise StoreError(
                f"No complete shards in {folder.root!r}. Create them with: hta-sql ingest TRACES "
                "-o STORE --shard 1/N"
            )
        new = [shard for shard in complete if manifest.published.get(shard.name) != shard.digest]
        with reporting_full_disk(folder, lambda: None):
            remove_orphaned_files(folder, manifest)
            if new:
                manifest = _merged(manifest, new)
                publish(folder, manifest)
        for shard in complete:
            _forget(folder, shard)
        _remove_traces_of_jobs(folder)
    if materialize:
        published = {run_of_shard(name) for name in manifest.published}
        materialize_answers(
            folder, runs=published & set(manifest.runs()), lock_timeout=lock_timeout
        )
    failures = [failure for shard in new for failure in shard.failures]
    return PublishReport([shard.name for shard in new], missing, failures, len(manifest.entries))


def _without_lost(folder: StoreFolder, shards: list[Shard]) -> list[Shard]:
    """Return the shards, marking those with missing Parquet files as incomplete."""
    entries = [entry for shard in shards for entry in shard.entries]
    whole = set(map(id, intact(folder, entries)))
    found = []
    for shard in shards:
        lost = [str(entry.rank) for entry in shard.entries if id(entry) not in whole]
        if shard.complete and lost:
            log.warning(
                "Shard %s is skipped: Parquet files of rank %s are missing; run its job again.",
                shard.name,
                ", ".join(lost),
            )
        found.append(replace(shard, complete=shard.complete and not lost))
    return found


def _merged(manifest: Manifest, shards: list[Shard]) -> Manifest:
    entries: list[RankEntry] = [entry for shard in shards for entry in shard.entries]
    names = {shard.name: shard.digest for shard in shards}
    merged = manifest.with_entries(entries)
    check_spans(merged.entries)
    for shard in shards:
        merged = merged.with_tags({entry.run for entry in shard.entries}, shard.tags)
    return replace(merged, published={**manifest.published, **names})


def _missing(shards: list[Shard], published: Iterable[str], expect: int | None) -> list[str]:
    """List the shards of the given runs that are neither published nor complete.

    Args:
        shards: The shards that are not published yet.
        published: Names of the published shards.
        expect: Required number of shards.
    """
    there: dict[tuple[str, int], set[int]] = defaultdict(set)
    for name in published:
        if match := _NAME.match(name):
            there[match[1], int(match[3])].add(int(match[2]))
    started = {shard.name for shard in shards if not shard.complete}
    for shard in shards:
        there[shard.run, shard.of] |= {shard.number} if shard.complete else set()
    if expect:
        there = {key: value for key, value in there.items() if key[1] == expect}
        there = there or {("*", expect): set()}
    names = [
        shard_name(run, number, of)
        for (run, of), numbers in sorted(there.items())
        for number in range(1, of + 1)
        if number not in numbers
    ]
    return [f"{name} (started, not finished)" if name in started else name for name in names]


def _forget(folder: StoreFolder, shard: Shard) -> None:
    """Delete the file of a published shard, unless its job has started again."""
    try:
        with store_lock(folder, 0, _lock_of(shard.name)):
            now = {other.name: other.digest for other in read_shards(folder)}
            if now.get(shard.name) == shard.digest:
                folder.remove([shard.path])
    except StoreError:
        log.info("Shard %s is being read again.", shard.name)


def _remove_traces_of_jobs(folder: StoreFolder) -> None:
    """Delete partial shard files of killed jobs, and the locks of shards that no longer exist.

    Otherwise these files would accumulate with every run.
    """
    present = folder.files(SHARDS) if folder.local else []
    for lock in [name for name in present if name.endswith(".lock")]:
        shard = lock.removesuffix("lock")
        with suppress(StoreError), store_lock(folder, 0, lock):  # fails if its job is running
            folder.remove([name for name in present if _is_partial(name, shard)])
            if not folder.sizes([shard.replace("/.", "/", 1) + "json"]):
                folder.remove([lock])


def _is_partial(name: str, shard: str) -> bool:
    return name.startswith(f"{shard}json.") and name.endswith(PARTIAL)


def is_being_ingested(folder: StoreFolder, name: str) -> bool:
    """Return whether a job is ingesting a shard.

    The lock of a dead job is free. At a URL, it becomes free when it has not been renewed for a
    while, so this function waits that long.
    """
    timeout_s = 0.0 if folder.local else remote_lock.STALE_S + remote_lock.BEAT_S
    try:
        with store_lock(folder, timeout_s, _lock_of(name)):
            return False
    except StoreError:
        return True


def _lock_of(name: str) -> str:
    return f"{SHARDS}/.{name}.lock"
