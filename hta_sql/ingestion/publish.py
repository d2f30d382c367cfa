"""What makes an ingest safe: fingerprints, one writer at a time, no leftovers."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fsspec

from hta_sql.errors import StoreError
from hta_sql.ingestion.rank import RankResult
from hta_sql.manifest import TABLES, Fingerprint, Manifest, RankEntry
from hta_sql.sqlfiles import sql_root

log = logging.getLogger(__name__)

ENDS_BYTES = 64 << 10


def fingerprint(path: str) -> Fingerprint:
    """Identify a file by size, time and a hash of its head and tail."""
    fs, name = fsspec.url_to_fs(path)
    info = fs.info(name)
    size = int(info["size"])
    digest = hashlib.sha256()
    with fs.open(name, "rb") as file:
        digest.update(file.read(ENDS_BYTES))
        if size > ENDS_BYTES:
            file.seek(max(ENDS_BYTES, size - ENDS_BYTES))
            digest.update(file.read(ENDS_BYTES))
    modified = info.get("mtime", 0)
    return Fingerprint(size, int(float(modified) * 1e9), digest.hexdigest())


@cache
def _definitions() -> str:
    """Hash the ingest SQL: new definitions make an ingested trace outdated."""
    digest = hashlib.sha256()
    for path in sorted((sql_root() / "ingest").rglob("*.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _options(kernel_classes: str | None) -> dict[str, Any]:
    own_rules = ""
    if kernel_classes:
        own_rules = hashlib.sha256(Path(kernel_classes).read_bytes()).hexdigest()
    return {"definitions": _definitions(), "kernel_classes": own_rules}


def is_current(entry: RankEntry, path: str, kernel_classes: str | None) -> bool:
    """Say whether the trace is already in the store as it would be ingested now."""
    return (
        entry.source == path
        and entry.options == _options(kernel_classes)
        and entry.fingerprint == fingerprint(path)
    )


def entry_of(result: RankResult, kernel_classes: str | None) -> RankEntry:
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
        fingerprint=fingerprint(job.path),
        rank_source=job.rank_source,
        event_count=result.event_count,
        quarantined=result.quarantined,
        start_ns=result.start_ns,
        step_names=result.steps,
        options=_options(kernel_classes),
        files=files,
    )


@contextmanager
def store_lock(store: Path) -> Iterator[None]:
    """Let one ingest write a store at a time; the system drops the lock of a dead one.

    Raises:
        StoreError: Another ingest is writing this store.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where ingests of one store must not overlap
    except ImportError:
        yield
        return
    with (store / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(
                f"Another ingest is writing {str(store)!r}. Wait for it, or use another store."
            ) from error
        yield


def remove_leftovers(store: Path, manifest: Manifest) -> int:
    """Delete table files that the manifest does not name; returns how many there were.

    They come from a killed ingest, or were replaced by the previous one: readers
    that opened the store before it could still use them until now.
    """
    tables = store / TABLES
    named = {file["path"] for entry in manifest.entries for file in entry.files.values()}
    removed = 0
    for path in tables.rglob("*") if tables.is_dir() else ():
        if path.is_file() and path.relative_to(store).as_posix() not in named:
            path.unlink(missing_ok=True)
            removed += 1
    if removed:
        log.info("Removed %d files of an earlier ingest from %s.", removed, store)
    return removed
