"""Traces ─▶ Parquet and manifest: discover, one job per rank on an Executor, publish."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from hta_sql.errors import TraceError
from hta_sql.ingestion.consistency import warn_of_mixed_clocks
from hta_sql.ingestion.fingerprints import KnownTraces
from hta_sql.ingestion.plan import Plan, Task, plan_ingest, rank_jobs, request_of
from hta_sql.ingestion.publish import (
    entry_of,
    intact,
    manifest_or_empty,
    remove_leftovers,
    room_in,
    settle,
)
from hta_sql.ingestion.rank import RankResult
from hta_sql.ingestion.running.executors import executor_for
from hta_sql.ingestion.running.workers import Failure, Progress, run_jobs
from hta_sql.ingestion.shards import PublishReport, ingest_shard, publish_shards
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.files import StoreFolder, store_folder
from hta_sql.store.locks import LOCK_TIMEOUT_S, store_lock
from hta_sql.store.manifest import Manifest, write_manifest
from hta_sql.traces import Traces

__all__ = [
    "IngestReport",
    "PublishReport",
    "RankResult",
    "Traces",
    "executor_for",
    "ingest_traces",
    "publish_shards",
]

Publish = Callable[[StoreFolder, Manifest], object]
"""Replaces the manifest of a store, and what is made of it; under the lock."""


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did: the ranks it read, those it found unchanged, and the runs."""

    results: list[RankResult]
    unchanged: list[TraceFile]
    runs: list[str]


def ingest_traces(
    traces: Traces,
    store: str | os.PathLike[str] | StoreFolder,
    *,
    run: str | None = None,
    ranks: Iterable[int] | None = None,
    jobs: int | None = None,
    force: bool = False,
    strict: bool = False,
    rank_regex: str | None = None,
    kernel_classes: str | None = None,
    memory_limit: str | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    shard: tuple[int, int] | None = None,
    lock_timeout: float = LOCK_TIMEOUT_S,
    publish: Publish = write_manifest,
) -> IngestReport:
    """Read traces into the store; see :func:`hta_sql.ingest`, which adds the catalog."""
    request = replace(
        request_of(traces, run, ranks),
        jobs=jobs,
        force=force,
        strict=strict,
        rank_regex=rank_regex,
        kernel_classes=kernel_classes,
        memory_limit=memory_limit,
    )
    known = KnownTraces(kernel_classes)
    task = Task(request, store_folder(store), known, executor, progress, lock_timeout)
    manifest = manifest_or_empty(task.folder)
    known.learn(intact(task.folder, manifest.entries))
    plan = plan_ingest(task)
    results: list[RankResult] = []
    failures: list[Failure] = []
    if shard:
        plan, results, failures = ingest_shard(task, plan, shard)
    elif plan.todo:
        with store_lock(task.folder, lock_timeout):
            plan, results, failures = _ingest(task, plan, manifest, publish)
    _report(failures, plan)
    return IngestReport(results, plan.unchanged, plan.runs(request.run))


def _ingest(
    task: Task, plan: Plan, before: Manifest, publish: Publish
) -> tuple[Plan, list[RankResult], list[Failure]]:
    """Read what is to be read and replace the manifest. Under the lock."""
    folder = task.folder
    manifest = manifest_or_empty(folder)
    if manifest != before:
        # Another ingest was there first; it may have done all of this one's work.
        task.known.learn(intact(folder, manifest.entries))
        plan = plan_ingest(task)
        if not plan.todo:
            return plan, [], []
    with room_in(folder, lambda: remove_leftovers(folder, manifest_or_empty(folder))):
        remove_leftovers(folder, manifest)
        jobs, crew = rank_jobs(task, plan.todo)
        with crew.given_executor(task.executor) as executor:
            results, failures = run_jobs(jobs, crew.workers, executor, task.progress)
        warn_of_mixed_clocks(results)
        if results:
            entries = [entry_of(result, task.known) for result in results]
            settle(folder, entries)
            publish(folder, manifest.with_entries(entries))
    return plan, results, failures


def _report(failures: list[Failure], plan: Plan) -> None:
    """Say which traces could not be read.

    Raises:
        TraceError: At least one could not.
    """
    if not failures:
        return
    total = len(plan.todo) + len(plan.unchanged)
    landed = total - len(failures)
    raise TraceError(
        f"{len(failures)} of {total} traces could not be ingested:\n"
        + "\n".join(f"  {failure.message}" for failure in failures)
        + (f"\nThe other {landed} are in the store." if landed else "")
    ) from failures[0].error
