"""Publishes a run of which each job ingests one shard: the job of the last shard publishes it."""

from __future__ import annotations

import time

from hta_sql.store.catalog.shards import is_being_ingested, publish_shards
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.store.disk.manifest import SHARDS
from hta_sql.store.disk.reports import PublishReport
from hta_sql.store.disk.shard_files import is_complete, shard_name

POLL_S = 1.0


def publish_last(
    folder: StoreFolder,
    run: str,
    shard: tuple[int, int],
    *,
    wait_s: float,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> PublishReport | None:
    """Publish a run if all its shards are complete; otherwise wait until another job does.

    Each job of the run calls this function after it has ingested its shard, so that the last one
    publishes. If shards are still missing after ``wait_s``, and no job is ingesting one, the
    complete shards are published. A later job then adds its shard.

    Two jobs may publish at once: the lock of the store orders them, and the second one finds
    nothing to publish.

    Args:
        folder: The store.
        run: The run.
        shard: Number of this job's shard, counted from 1, and the number of shards of the run.
        wait_s: Time to wait for shards that no job is ingesting [s].
        lock_timeout: Time to wait for another writer of the store [s].

    Returns:
        What this job has published; None if another job has published the shard.

    Raises:
        StoreError: Another process is writing to the store for longer than ``lock_timeout``.
    """
    names = [shard_name(run, number, shard[1]) for number in range(1, shard[1] + 1)]
    own = _path(names[shard[0] - 1])
    while not _is_ready(folder, names):
        until = time.monotonic() + wait_s
        is_over = False
        while not is_over:
            time.sleep(POLL_S)
            # Only this job's shard: thousands of waiting jobs must not read each other's shards.
            if not folder.sizes([own]):
                return None
            is_over = time.monotonic() >= until
        if not any(_is_unfinished(folder, name) for name in names):
            break
    report = publish_shards(folder, run=run, lock_timeout=lock_timeout)
    return report if report.merged else None


def _is_ready(folder: StoreFolder, names: list[str]) -> bool:
    """Return whether all shards are complete; read none if one does not exist."""
    paths = list(map(_path, names))
    return set(folder.files(SHARDS)) >= set(paths) and all(is_complete(folder, p) for p in paths)


def _is_unfinished(folder: StoreFolder, name: str) -> bool:
    """Return whether a job is ingesting a shard at this moment."""
    path = _path(name)
    return (
        bool(folder.sizes([path]))
        and not is_complete(folder, path)
        and is_being_ingested(folder, name)
    )


def _path(name: str) -> str:
    return f"{SHARDS}/{name}.json"
