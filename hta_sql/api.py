"""The two ways in: ingest traces into a store, open a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.ingestion import IngestReport, RankResult
    from hta_sql.store.trace_store import TraceStore

    Traces = str | os.PathLike[str] | Iterable[str] | Mapping[int, str]
    Progress = Callable[[RankResult, int, int], None]

LOCK_TIMEOUT_S = 60.0


@overload
def ingest(
    traces: Traces,
    store: str | os.PathLike[str],
    *,
    shard: None = None,
    run: str | None = ...,
    ranks: Iterable[int] | None = ...,
    jobs: int | None = ...,
    force: bool = ...,
    strict: bool = ...,
    rank_regex: str | None = ...,
    kernel_classes: str | os.PathLike[str] | None = ...,
    memory_limit: str | None = ...,
    executor: Executor | None = ...,
    progress: Progress | None = ...,
    lock_timeout: float = ...,
) -> TraceStore: ...


@overload
def ingest(
    traces: Traces,
    store: str | os.PathLike[str],
    *,
    shard: tuple[int, int],
    run: str | None = ...,
    ranks: Iterable[int] | None = ...,
    jobs: int | None = ...,
    force: bool = ...,
    strict: bool = ...,
    rank_regex: str | None = ...,
    kernel_classes: str | os.PathLike[str] | None = ...,
    memory_limit: str | None = ...,
    executor: Executor | None = ...,
    progress: Progress | None = ...,
    lock_timeout: float = ...,
) -> IngestReport: ...


def ingest(
    traces: Traces,
    store: str | os.PathLike[str],
    *,
    shard: tuple[int, int] | None = None,
    run: str | None = None,
    ranks: Iterable[int] | None = None,
    jobs: int | None = None,
    force: bool = False,
    strict: bool = False,
    rank_regex: str | None = None,
    kernel_classes: str | os.PathLike[str] | None = None,
    memory_limit: str | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> TraceStore | IngestReport:
    """Read Kineto traces into a store, once, and open it.

    Unchanged files that the store already holds are skipped. Nothing of an
    ingest is visible to readers before all of it is.

    Args:
        traces: A trace file, a folder (searched recursively), a glob, a list of these,
            or ``{rank: path}``; ``.json``, ``.json.gz`` or ``.json.zst``, local or any
            fsspec URL. Also ``trace_view.json`` of Ascend devices, and the CSV and JSON files of
            a MindSpore cluster, several of which are one rank.
        store: Folder of the store, or its fsspec URL; made where missing, else added to.
        shard: ``(i, n)``: read only the i-th of n parts of the traces, counted from 1, and leave
            the rest to other jobs; :func:`hta_sql.publish` puts the parts together.
        run: Name of the run; default: the name of the folder or file.
        ranks: Read only these ranks.
        jobs: Processes; default: the cores that this process may use.
        force: Read unchanged files again.
        strict: Refuse a trace with anything broken in it; default: keep what is whole, repair
            what can be repaired, and list both in the table ``quarantine``.
        rank_regex: Finds the rank in file names; its first group is the rank.
        kernel_classes: CSV with rules that go before the built-in ones
            (priority, regex, class, collective, vendor).
        memory_limit: Memory of each process's engine, for example ``"1GiB"``.
        executor: Any ``concurrent.futures.Executor`` to run the ranks on.
        progress: Called after each rank with (result, ranks done, ranks to do).
        lock_timeout: Time to wait for another ingest that is writing the store [s].

    Returns:
        The store, opened; for a shard, what was read.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: Some traces could not be read; the others are in the store.
        RankError: A wanted rank is not among the traces.
        ParameterError: A bad run name, regex or number of jobs.
        StoreError: Another ingest is writing the store for longer than ``lock_timeout``, or there
            is no room left to write it.
    """
    from hta_sql.ingestion import ingest_traces  # noqa: PLC0415
    from hta_sql.store.catalog import publish_manifest  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.store.trace_store import TraceStore  # noqa: PLC0415

    report = ingest_traces(
        os.fspath(traces) if isinstance(traces, os.PathLike) else traces,
        store,
        shard=shard,
        run=run,
        ranks=ranks,
        jobs=jobs,
        force=force,
        strict=strict,
        rank_regex=rank_regex,
        kernel_classes=os.fspath(kernel_classes) if kernel_classes else None,
        memory_limit=memory_limit,
        executor=executor,
        progress=progress,
        lock_timeout=lock_timeout,
        publish=publish_manifest,
    )
    if shard:
        return report
    opened = TraceStore(store)
    opened.ingested = report
    return opened


def publish(
    store: str | os.PathLike[str],
    *,
    expect: int | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
) -> TraceStore:
    """Put the shards together that ``ingest(..., shard=(i, n))`` has read, and open the store.

    Running it again changes nothing. The shards that are there become visible at once.

    Args:
        store: Folder of the store, or its fsspec URL.
        expect: Number of shards that there have to be; default: publish what is there.
        lock_timeout: Time to wait for another ingest that is writing the store [s].

    Returns:
        The store; ``.published`` says which shards were merged and which are missing.

    Raises:
        StoreError: Shards are missing of those that are expected, or there are none at all.
    """
    from hta_sql.ingestion import publish_shards  # noqa: PLC0415
    from hta_sql.store.catalog import publish_manifest  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.store.trace_store import TraceStore  # noqa: PLC0415

    report = publish_shards(
        store, expect=expect, lock_timeout=lock_timeout, publish=publish_manifest
    )
    opened = TraceStore(store)
    opened.published = report
    return opened


def open_store(store: str | os.PathLike[str], **options: object) -> TraceStore:
    """Open a store for reading; see :class:`hta_sql.TraceStore`."""
    from hta_sql.store.trace_store import TraceStore  # noqa: PLC0415

    return TraceStore(store, **options)  # type: ignore[arg-type]
