"""Provide the entry points: ingest traces into a store, and open a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hta_sql.ingestion.options import IngestOptions, ShardOptions, called_with
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S

if TYPE_CHECKING:
    from hta_sql.store.disk.reports import IngestReport
    from hta_sql.store.query.trace_store import TraceStore

# The modules behind these functions are imported on call, to start faster.


@called_with(IngestOptions)
def ingest(options: IngestOptions) -> TraceStore:
    """Ingest Kineto traces into a store, and open the store.

    Unchanged files that the store already contains are skipped. Readers see either nothing of an
    ingest or all of it.

    Returns:
        The store after the ingest, opened on the first query; ``.ingested`` is the report.

    Raises:
        TraceNotFoundError: No traces found.
        TraceError: Some traces could not be read; the others are in the store.
        RankError: A requested rank is not among the traces.
        ParameterError: The run name, regex or number of jobs is not valid.
        StoreError: Another ingest holds the store for longer than ``lock_timeout``, or the disk is
            full.
    """
    from hta_sql.ingestion.ingest import ingest_traces  # noqa: PLC0415
    from hta_sql.store.query.snapshot import HeldStore  # noqa: PLC0415

    report = ingest_traces(options)
    opened = HeldStore(options.store)
    opened.ingested = report
    return opened


@called_with(ShardOptions)
def ingest_shard(options: ShardOptions) -> IngestReport:
    """Ingest one shard of the traces of a run; other jobs ingest the other shards.

    Each job of an array ingests a different shard; :func:`hta_sql.publish` merges them. A job that
    repeats the shard of a killed job reuses the traces that the killed job had already read.

    Returns:
        Report of the ingest.

    Raises:
        TraceNotFoundError: No traces found.
        TraceError: Some traces could not be read; the others are in the shard.
        RankError: A requested rank is not among the traces.
        ParameterError: The shard, run name, regex or number of jobs is not valid.
        StoreError: Another process ingests the same shard for longer than ``lock_timeout``, or the
            disk is full.
    """
    from hta_sql.ingestion import ingest as ingestion  # noqa: PLC0415

    return ingestion.ingest_shard(options)


def publish(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    expect: int | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
    materialize: bool = False,
) -> TraceStore:
    """Merge the shards that :func:`hta_sql.ingest_shard` has ingested, and open the store.

    Running it again changes nothing. The merged shards become visible at once.

    Args:
        store: Folder of the store, or its fsspec URL.
        run: Publish only the shards of this run; default: those of all runs.
        expect: Required number of shards; by default, whichever shards exist are published.
        lock_timeout: Time to wait for another ingest that is writing the store [s].
        materialize: Also store the small results of analyses on the new data.

    Returns:
        The store; ``.published`` lists the merged and the missing shards.

    Raises:
        StoreError: Expected shards are missing, or there are no shards.
    """
    from hta_sql.store.catalog.shards import publish_shards  # noqa: PLC0415
    from hta_sql.store.query.snapshot import HeldStore  # noqa: PLC0415

    report = publish_shards(
        store, run=run, expect=expect, lock_timeout=lock_timeout, materialize=materialize
    )
    opened = HeldStore(store)
    opened.published = report
    return opened


def open_store(store: str | os.PathLike[str], **options: object) -> TraceStore:
    """Open a store for reading; see :class:`hta_sql.TraceStore`."""
    from hta_sql.store.query.trace_store import TraceStore  # noqa: PLC0415

    return TraceStore(store, **options)  # type: ignore[arg-type]
