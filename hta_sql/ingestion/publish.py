"""From ranks that were read to a store that has them: entries for the manifest, no leftovers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from hta_sql.ingestion.rank import RankResult
from hta_sql.ingestion.shard_files import protected_files
from hta_sql.library.files import columns_digest
from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import (
    CATALOG,
    MANIFEST,
    RELATIVE_CATALOG,
    SHARDS,
    TABLES,
    Manifest,
    RankEntry,
)
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)


def entry_of(result: RankResult, options: dict[str, Any]) -> RankEntry:
    """Turn what a job returned into its line of the manifest.

    Args:
        result: What it returned.
        options: What beside the trace decided what is stored.
    """
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
        options=options,
        files=files,
        schema=columns_digest(),
        process=job.process,
        end_ns=job.end_ns,
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
