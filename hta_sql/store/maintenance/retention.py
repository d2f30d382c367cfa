"""Retention: selects the old runs of a store and removes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from hta_sql.errors import ParameterError
from hta_sql.store.catalog.run_tags import checked_tags
from hta_sql.store.disk.baselines import baseline_runs
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.store.disk.manifest import Manifest, Store, read_manifest
from hta_sql.store.disk.run_names import is_unix_time
from hta_sql.store.maintenance.edits import remove_runs


def retain_runs(
    store: Store,
    *,
    keep: int | None = None,
    tags: Mapping[str, object] | None = None,
    older_than: timedelta | None = None,
    dry_run: bool = False,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> list[str]:
    """Remove old runs from a store; return the removed runs, oldest first.

    Only runs with all of ``tags`` are removed. Of these, the newest ``keep`` runs and all runs
    younger than ``older_than`` remain. The age of a run is counted from its first event, or from
    its ingest if the trace has no base time. Runs with neither time always remain, and so do
    baselines recorded in the store's own baselines file.

    Args:
        store: Folder of the store, or its fsspec URL.
        keep: Number of newest runs to keep, regardless of age; default: none.
        tags: Tag ─▶ value; runs that do not have all of these tags remain.
        older_than: Minimum age of the runs to remove.
        dry_run: Only return the runs that would be removed.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Raises:
        ParameterError: Neither ``keep`` nor ``older_than`` was passed, or one of them is negative.
        StoreNotFoundError: There is no store at that path.
        StoreError: The lock was not released within ``lock_timeout``.
    """
    if keep is None and older_than is None:
        raise ParameterError(
            "Pass the number of runs to keep, or the minimum age of runs to remove."
        )
    if (keep or 0) < 0 or (older_than or timedelta()) < timedelta():
        raise ParameterError("The number of runs to keep and the minimum age must not be negative.")
    manifest = read_manifest(store)
    before = time.time_ns() - _nanoseconds(older_than or timedelta())
    times = run_times(manifest, checked_tags(tags))
    named = baseline_runs(store_folder(store))
    oldest_first = sorted(times.keys() - named, key=lambda run: (times[run], run))
    candidates = oldest_first[: max(0, len(oldest_first) - (keep or 0))]
    old = [run for run in candidates if older_than is None or times[run] < before]
    if old and not dry_run:
        remove_runs(store, old, lock_timeout=lock_timeout)
    return old


def run_times(manifest: Manifest, tags: Mapping[str, str]) -> dict[str, int]:
    """Return the capture time, or else the ingest time, of runs with these tags [Unix ns]."""
    captured: dict[str, int] = {}
    ingested: dict[str, int] = {}
    for entry in manifest.entries:
        if not tags.items() <= manifest.tags.get(entry.run, {}).items():
            continue
        if entry.start_ns is not None and is_unix_time(entry.start_ns):
            captured[entry.run] = min(captured.get(entry.run, entry.start_ns), entry.start_ns)
        if entry.ingested_ns is not None:
            ingested[entry.run] = max(ingested.get(entry.run, 0), entry.ingested_ns)
    return ingested | captured


def _nanoseconds(age: timedelta) -> int:
    return age // timedelta(microseconds=1) * 1000
