"""What makes an ingest safe: entries for the manifest, room on the disk, no leftovers."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import duckdb

from hta_sql.errors import StoreError, StoreNotFoundError
from hta_sql.ingestion.fingerprints import KnownTraces
from hta_sql.ingestion.rank import RankResult
from hta_sql.ingestion.shard_files import SHARDS, protected_files
from hta_sql.library.files import columns_digest
from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import (
    CATALOG,
    MANIFEST,
    RELATIVE_CATALOG,
    TABLES,
    Manifest,
    RankEntry,
    read_manifest,
)
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def manifest_or_empty(folder: StoreFolder) -> Manifest:
    """Read the manifest; a store that is not there yet is an empty one."""
    try:
        return read_manifest(folder)
    except StoreNotFoundError:
        return Manifest()


def intact(folder: StoreFolder, entries: Sequence[RankEntry]) -> list[RankEntry]:
    """Keep the entries whose files are all there; what is lost is to be read again."""
    files = [{file["path"] for file in entry.files.values()} for entry in entries]
    missing = folder.missing(set().union(*files))
    return [entry for entry, named in zip(entries, files, strict=True) if not named & missing]


def entry_of(result: RankResult, known: KnownTraces) -> RankEntry:
    """Turn what a job returned into its line of the manifest."""
    job = result.job
    files = {
        file.table: {"path": f"{TABLES}/{file.path}", "rows": file.rows, "bytes": file.bytes}
        for file in result.files
    }
    return RankEntry(
        run=job.run,
        rank=job.rank,
        source=job.path,
        fingerprint=result.fingerprint,
        rank_source=job.rank_source,
        event_count=result.event_count,
        quarantined=result.quarantined,
        start_ns=result.start_ns,
        step_names=result.steps,
        options=known.options,
        files=files,
        schema=columns_digest(),
    )


def settle(folder: StoreFolder, entries: Iterable[RankEntry]) -> None:
    """See to it that the files of entries survive a power loss, before anything names them."""
    folder.settle(file["path"] for entry in entries for file in entry.files.values())


def remove_leftovers(folder: StoreFolder, manifest: Manifest) -> int:
    """Delete files that nothing names; returns how many there were. Only under the lock.

    They come from a killed ingest, or were replaced by the previous one: readers
    that opened the store before it could still use them until now.
    """
    # Listed first: a shard that starts later is announced before it writes, and not listed here.
    present = folder.files("")
    named = manifest.named_files() | protected_files(folder, present)
    leftovers = [name for name in present if _is_leftover(name, named)]
    folder.remove(leftovers)
    if leftovers:
        log.info("Removed %d files of an earlier ingest from %s.", len(leftovers), folder.root)
    return len(leftovers)


def _is_leftover(name: str, named: set[str]) -> bool:
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


def is_disk_full(error: BaseException) -> bool:
    """Recognise a full disk, an exceeded quota or file size, by the system or by the engine."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    texts = [os.strerror(number) for number in _FULL]
    return isinstance(error, duckdb.Error) and any(text in str(error) for text in texts)


@contextmanager
def room_in(folder: StoreFolder, give_back: Callable[[], object]) -> Iterator[None]:
    """Turn a full disk into an error that says so, after giving back what was written.

    Raises:
        StoreError: The disk is full.
    """
    try:
        yield
    except (OSError, duckdb.Error) as error:
        if not is_disk_full(error):
            raise
        give_back()
        first = str(error).partition("\n")[0]
        raise StoreError(
            f"No space left to write {folder.root!r}: {first}. What the store held before is "
            "intact. Make room and ingest again."
        ) from error
