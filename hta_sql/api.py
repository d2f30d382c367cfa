"""The ways in: ingest traces into a store, open a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hta_sql.ingestion.options import IngestOptions, ShardOptions, called_with
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from hta_sql.store.disk.reports import IngestReport
    from hta_sql.store.maintenance.repair import Repaired
    from hta_sql.store.query.trace_store import TraceStore

# The modules behind these are imported where they are called: they are the start-up cost.


@called_with(IngestOptions)
def ingest(options: IngestOptions) -> TraceStore:
    """Read Kineto traces into a store, once, and open it.

    Unchanged files that the store already holds are skipped. Nothing of an
    ingest is visible to readers before all of it is.

    Returns:
        The store as this left it, opened at the first question; ``.ingested`` says what was read.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: Some traces could not be read; the others are in the store.
        RankError: A wanted rank is not among the traces.
        ParameterError: A bad run name, regex or number of jobs.
        StoreError: Another ingest is writing the store for longer than ``lock_timeout``, or there
            is no room left to write it.
    """
    from hta_sql.ingestion.ingest import ingest_traces  # noqa: PLC0415
    from hta_sql.store.query.snapshot import HeldStore  # noqa: PLC0415

    report = ingest_traces(options)
    opened = HeldStore(options.store)
    opened.ingested = report
    return opened


@called_with(ShardOptions)
def ingest_shard(options: ShardOptions) -> IngestReport:
    """Read one part of the traces of a run, and leave the others to other jobs.

    Each job of an array does so with another part; :func:`hta_sql.publish` puts them together. What
    a killed job had read is kept for the next one of the same part.

    Returns:
        What was read.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: Some traces could not be read; the others are in the shard.
        RankError: A wanted rank is not among the traces.
        ParameterError: A bad shard, run name, regex or number of jobs.
        StoreError: The same shard is being read for longer than ``lock_timeout``, or there is no
            room left to write it.
    """
    from hta_sql.ingestion import ingest as ingestion  # noqa: PLC0415

    return ingestion.ingest_shard(options)


def publish(
    store: str | os.PathLike[str],
    *,
    expect: int | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
    materialize: bool = False,
) -> TraceStore:
    """Put the shards together that :func:`hta_sql.ingest_shard` has read, and open the store.

    Running it again changes nothing. The shards that are there become visible at once.

    Args:
        store: Folder of the store, or its fsspec URL.
        expect: Number of shards that there have to be; default: publish what is there.
        lock_timeout: Time to wait for another ingest that is writing the store [s].
        materialize: Keep, beside the tables, the answers about what shards brought that are small.

    Returns:
        The store; ``.published`` says which shards were merged and which are missing.

    Raises:
        StoreError: Shards are missing of those that are expected, or there are none at all.
    """
    from hta_sql.store.catalog.shards import publish_shards  # noqa: PLC0415
    from hta_sql.store.query.snapshot import HeldStore  # noqa: PLC0415

    report = publish_shards(
        store, expect=expect, lock_timeout=lock_timeout, materialize=materialize
    )
    opened = HeldStore(store)
    opened.published = report
    return opened


def open_store(store: str | os.PathLike[str], **options: object) -> TraceStore:
    """Open a store for reading; see :class:`hta_sql.TraceStore`."""
    from hta_sql.store.query.trace_store import TraceStore  # noqa: PLC0415

    return TraceStore(store, **options)  # type: ignore[arg-type]


def repair_store(
    store: str | os.PathLike[str], *, deep: bool = False, lock_timeout: float = LOCK_TIMEOUT_S
) -> Repaired:
    """Repair a store: rebuild what can be rebuilt, quarantine the rest.

    Args:
        store: Folder of the store, or its fsspec URL.
        deep: Follow every link between events.
        lock_timeout: Time to wait for another process that is writing the store [s].

    Returns:
        The faults, the ranks whose traces were read again, and those that stay quarantined.

    Raises:
        StoreNotFoundError: There is no store at that path.
        StoreDamagedError: Its manifest is damaged, and its catalog has no copy of it.
        StoreError: Another process is writing it for longer than ``lock_timeout``.
    """
    from hta_sql.ingestion.reread import read_again  # noqa: PLC0415
    from hta_sql.store.maintenance.repair import repair  # noqa: PLC0415

    return repair(store, read_again, deep=deep, lock_timeout=lock_timeout)
