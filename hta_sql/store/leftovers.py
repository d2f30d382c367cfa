"""Files of a store that nothing names: what a killed write left behind, and what was replaced."""

from __future__ import annotations

import logging

from hta_sql.store.files import StoreFolder
from hta_sql.store.manifest import (
    CATALOG,
    MANIFEST,
    RELATIVE_CATALOG,
    SHARDS,
    TABLES,
    Manifest,
)
from hta_sql.store.shard_files import protected_files
from hta_sql.store.unfinished import unfinished_files
from hta_sql.traces.writing import PARTIAL

log = logging.getLogger(__name__)


def remove_leftovers(folder: StoreFolder, manifest: Manifest) -> int:
    """Delete files that nothing names; returns how many there were. Only under the lock.

    They come from a killed ingest, or were replaced by the previous one: readers
    that opened the store before it could still use them until now.
    """
    # Listed first: a shard that starts later is announced before it writes, and not listed here.
    present = folder.files("")
    named = manifest.named_files() | protected_files(folder, present) | unfinished_files(folder)
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
