"""Runs an ingest: plan, read each rank, publish; either all traces or one shard."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from hta_sql.ingestion.consistency import warn_of_mixed_clocks
from hta_sql.ingestion.options import IngestOptions, ShardOptions
from hta_sql.ingestion.plan import (
    IngestPlan,
    Work,
    compared,
    plan_ingest,
    rank_jobs,
    share,
    work_of,
)
from hta_sql.ingestion.rank_job import RankResult
from hta_sql.ingestion.running.workers import Failure, raise_failures, run_jobs
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.library.sql_files import columns_digest
from hta_sql.store.catalog.ingest_target import RankWriter
from hta_sql.store.catalog.shards import ShardWriter, locked_shard
from hta_sql.store.disk.manifest import TABLES, RankEntry
from hta_sql.store.disk.reports import IngestReport
from hta_sql.store.disk.shard_files import Shard, check_shard
from hta_sql.traces.names import path_text


def ingest_traces(options: IngestOptions) -> IngestReport:
    """Ingest traces into a store; see :func:`hta_sql.ingest`, which also opens the store.

    Raises:
        TraceError: Some traces could not be read; the others are in the store.
    """
    plan = plan_ingest(options)
    contents = plan.target.contents()
    work = work_of(plan, contents)
    read: list[RankEntry] = []
    if work.todo or work.resumed:
        with plan.target.locked() as writer:
            if writer.contents != contents:
                # Another ingest ran meanwhile; it may have done all of the work.
                work = work_of(plan, writer.contents)
            read, failures = read_and_publish(plan, work, writer)
        raise_failures(failures, len(work.todo) + len(work.unchanged) + len(work.resumed))
    report = IngestReport(read, work.unchanged, work.runs, work.resumed)
    plan.target.finish(report)
    return report


def read_and_publish(
    plan: IngestPlan, work: Work, writer: RankWriter
) -> tuple[list[RankEntry], list[Failure]]:
    """Read the remaining traces and publish them.

    Call only under the store's lock.
    """
    if not work.todo and not work.resumed:
        return [], []
    with writer.adding(work.resumed):
        with writer.resumable():
            results, failures = _read(plan, work.todo, writer.add)
        warn_of_mixed_clocks(results)
        entries = [entry_of(result, plan.known.stored_as(result.job)) for result in results]
        writer.publish(entries, work.runs)
    return entries, failures


def ingest_shard(options: ShardOptions, *, is_whole: bool = False) -> IngestReport:
    """Ingest one shard of the traces; write only Parquet files and the shard's own file.

    Args:
        options: The options of the ingest.
        is_whole: Whether the traces are those of this shard, instead of those of all shards.

    Raises:
        TraceError: Some traces could not be read; the others are in the shard.
    """
    plan = plan_ingest(options)
    number, of = check_shard(options.shard)
    target = plan.target
    found = work_of(plan, target.contents()).found
    with locked_shard(target, number, of) as earlier:
        plan.known.learn(earlier)
        work = compared(plan, found if is_whole else share(found, number, of))
        kept = [entry for entry in work.unchanged if entry in earlier]
        prefix = f"{uuid.uuid4().hex[:12]}-"
        shard = Shard(target.run, number, of, prefix, entries=kept, tags=target.tags)
        writer = ShardWriter(target.folder, shard)
        with writer.adding():
            results, failures = _read(plan, work.todo, writer.add, prefix)
        writer.finish([failure.message for failure in failures])
    raise_failures(failures, len(work.todo) + len(work.unchanged))
    read = [entry_of(result, plan.known.stored_as(result.job)) for result in results]
    return IngestReport(read, work.unchanged, work.runs)


def _read(
    plan: IngestPlan,
    files: Sequence[TraceFile],
    add: Callable[[RankEntry], object],
    prefix: str = "",
) -> tuple[list[RankResult], list[Failure]]:
    """Read traces; return the ranks that were read, and the traces that failed.

    Args:
        plan: The plan of the ingest.
        files: The traces.
        add: Called with the entry of each rank as soon as it is read.
        prefix: Prefix of the Parquet file names.
    """

    def after_rank(result: RankResult, done: int, total: int) -> None:
        add(entry_of(result, plan.known.stored_as(result.job)))
        if plan.progress:
            plan.progress(result, done, total)

    jobs, workers = rank_jobs(plan, files, prefix)
    return run_jobs(jobs, workers, plan.executor, after_rank)


def entry_of(result: RankResult, stored_as: dict[str, Any]) -> RankEntry:
    """Return the manifest entry of an ingested rank.

    Args:
        result: Result of the rank's job.
        stored_as: Digests of definitions and rules, which determine the stored data together with
            the trace.
    """
    job = result.job
    files = {
        file.table: {
            "path": f"{TABLES}/{file.path}",
            "rows": file.rows,
            "file_rows": file.file_rows,
            "bytes": file.bytes,
            "sha256": file.sha256,
        }
        for file in result.files
    }
    return RankEntry(
        run=job.run,
        rank=job.rank,
        source=path_text(job.path),
        fingerprint=result.fingerprint,
        rank_source=job.rank_source,
        event_count=result.event_count,
        quarantined=result.quarantined,
        start_ns=result.start_ns,
        step_names=result.steps,
        options=stored_as,
        files=files,
        schema=columns_digest(),
        process=job.process,
        end_ns=job.end_ns,
        ingested_ns=time.time_ns(),
        facts=result.facts,
        span=job.span,
        role=job.role,
        role_source=job.role_source,
        first_rank=job.first_rank,
        pid=job.pid,
    )
