"""Checks of single Parquet files against the manifest: existence, size, checksum."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from hta_sql.errors import StoreError
from hta_sql.machine import cpu_count
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import Manifest, MaterializedTable, RankEntry
from hta_sql.text import rank_spans

log = logging.getLogger(__name__)

_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors caused by this process (out of memory or file descriptors), not by the file."""

LISTED = 10
"""Maximum number of files that a message names."""


@dataclass(frozen=True)
class Fault:
    """A defect of a file."""

    file: str
    """Path relative to the store."""
    kind: str
    """Kind of fault: manifest, catalog, analyses, shard, missing, size, content or links."""
    message: str
    run: str | None = None
    ranks: tuple[int, ...] = ()
    """The ranks that need the file; empty for a table or an answer that is computed from them."""

    @property
    def is_of_ranks(self) -> bool:
        """Return whether ranks of a run need the file, which is not computed from others."""
        return bool(self.ranks)

    def __str__(self) -> str:
        """Return the file, the run and ranks that need it, and the defect."""
        noun = "ranks" if len(self.ranks) > 1 else "rank"
        of = f" {noun} {rank_spans(self.ranks)}" if self.ranks else ""
        where = f" (run {self.run}{of})" if self.run else ""
        return f"{self.file}{where}: {self.message}"


class Expected(NamedTuple):
    """A Parquet file as the manifest describes it."""

    path: str
    bytes: int
    sha256: str
    run: str
    ranks: tuple[int, ...] = ()
    """The ranks that reference the file; empty for a materialized file, which covers its run."""

    def fault(self, kind: str, message: str) -> Fault:
        """Return a fault of this file."""
        return Fault(self.path, kind, message, self.run, self.ranks)


def of_entries(entries: Iterable[RankEntry]) -> list[Expected]:
    """List the expected files of rank entries; a shared file is listed only once."""
    found: dict[str, tuple[int, str, str, list[int]]] = {}
    for entry in entries:
        for file in entry.files.values():
            fresh = (file["bytes"], file["sha256"], entry.run, list[int]())
            found.setdefault(file["path"], fresh)[3].append(entry.rank)
    return [
        Expected(path, size, sha256, run, tuple(ranks))
        for path, (size, sha256, run, ranks) in found.items()
    ]


def of_materialized(kept: Iterable[MaterializedTable]) -> list[Expected]:
    """List the expected files of derived tables and materialized answers."""
    return [Expected(one.path, one.bytes, one.sha256 or "", one.run) for one in kept if one.path]


def files_of(manifest: Manifest) -> list[Expected]:
    """List the expected files of a store."""
    return [*of_entries(manifest.entries), *of_materialized(manifest.materialized)]


def size_faults(folder: StoreFolder, files: Collection[Expected]) -> list[Fault]:
    """Return the files that are missing or have another size.

    File names are never reused, so a file of another size was truncated or changed. For 20,000
    local files, this takes 0.1 s. For a store at a URL, it takes one listing.
    """
    sizes = folder.sizes([file.path for file in files])
    found = []
    for file in files:
        size = sizes.get(file.path)
        if size is None:
            found.append(file.fault("missing", "it is missing"))
        elif file.bytes and size != file.bytes:
            written = f"it has {size:,} bytes, but {file.bytes:,} were written"
            found.append(file.fault("size", written))
    return found


def content_fault(
    folder: StoreFolder, file: Expected, digest_of: Callable[[str], str] | None = None
) -> Fault | None:
    """Compare the checksum of a file; return its fault, or None.

    Args:
        folder: The store.
        file: The file as the manifest describes it.
        digest_of: Computes the SHA-256 of a file of the store; default: ``folder.digest``.

    Raises:
        StoreError: Object storage does not respond.
        OSError: This process has no memory or file descriptors left.
    """
    try:
        if (digest_of or folder.digest)(file.path) == file.sha256:
            return None
        return file.fault("content", "its checksum does not match the manifest")
    except FileNotFoundError:
        return file.fault("missing", "it is missing")
    except OSError as error:
        if error.errno in _OURS:
            raise
        if not folder.local:  # unresponsive object storage is not a fault of the file
            raise StoreError(
                f"{folder.path(file.path)!r} currently cannot be read: {error}"
            ) from error
        return file.fault("content", f"it cannot be read: {error}")


def faults_of(folder: StoreFolder, files: Collection[Expected]) -> list[Fault]:
    """Check sizes and checksums of files in parallel; return the first fault found in each.

    Args:
        folder: The store.
        files: The files as the manifest describes them.

    Raises:
        StoreError: Object storage does not respond.
    """
    found = size_faults(folder, files)
    wrong = {fault.file for fault in found}
    whole = [file for file in files if file.path not in wrong]
    with ThreadPoolExecutor(cpu_count()) as pool:
        found += filter(None, pool.map(partial(content_fault, folder), whole))
    return found


def described(root: str, faults: Collection[Fault]) -> str:
    """Return what is wrong with files of a store, and the commands that restore it."""
    listed = "; ".join(str(fault) for fault in list(faults)[:LISTED])
    if len(faults) > LISTED:
        listed += f"; ... ({len(faults):,} in total: hta-sql verify {root})"
    return ". ".join([listed, *remedies(root, faults)])


def remedies(root: str, faults: Iterable[Fault]) -> list[str]:
    """Return a sentence for each command that restores files of a store.

    Args:
        root: Location of the store.
        faults: Faults of Parquet files.
    """
    faults = list(faults)
    found = [
        f"Ingest the traces of run {run} again: hta-sql ingest TRACES -o {root} --run {run} "
        f"--force. If they are gone, remove the run: hta-sql runs remove {root} {run}"
        for run in sorted({fault.run for fault in faults if fault.run and fault.is_of_ranks})
    ]
    if any(fault.run and not fault.is_of_ranks for fault in faults):
        found.append(f"Write the computed tables again: hta-sql materialize {root}")
    return found


def warn_of_faults(root: str, faults: Collection[Fault]) -> None:
    """Log the files of a store that are missing or damaged, and the remedy."""
    log.warning("%s: files are missing or damaged: %s", root, described(root, faults))
