"""The way of an ingest: plan, read each rank, publish."""

from __future__ import annotations

from hta_sql.ingestion.consistency import warn_of_mixed_clocks
from hta_sql.ingestion.options import IngestOptions
from hta_sql.ingestion.plan import Plan, Task, plan_ingest, rank_jobs, task_of
from hta_sql.ingestion.publish import entry_of, settle
from hta_sql.ingestion.room import room_in
from hta_sql.ingestion.running.workers import Failure, raise_failures, run_jobs
from hta_sql.ingestion.spans import check_spans
from hta_sql.store.edits import tag_runs
from hta_sql.store.leftovers import remove_leftovers
from hta_sql.store.locks import store_lock
from hta_sql.store.manifest import Manifest, RankEntry, manifest_or_empty
from hta_sql.store.materialize import keep_answers, publish
from hta_sql.store.reports import IngestReport


def ingest_traces(options: IngestOptions) -> IngestReport:
    """Read traces into a store; see :func:`hta_sql.ingest`, which opens it.

    Raises:
        TraceError: Some traces could not be read; the others are in the store.
    """
    task = task_of(options)
    before = manifest_or_empty(task.folder)
    plan = plan_ingest(task, before)
    read: list[RankEntry] = []
    if plan.todo:
        with store_lock(task.folder, options.lock_timeout):
            manifest = manifest_or_empty(task.folder)
            if manifest != before:
                # Another ingest was there first; it may have done all of this one's work.
                plan = plan_ingest(task, manifest)
            read, failures = read_and_publish(task, plan, manifest)
        raise_failures(failures, len(plan.todo) + len(plan.unchanged))
    if task.tags and not read:
        tag_runs(task.folder, plan.runs(task), task.tags, lock_timeout=options.lock_timeout)
    report = IngestReport(read, plan.unchanged, plan.runs(task))
    if options.materialize:
        keep_answers(task.folder, runs=report.runs, lock_timeout=options.lock_timeout)
    return report


def read_and_publish(
    task: Task, plan: Plan, manifest: Manifest
) -> tuple[list[RankEntry], list[Failure]]:
    """Read what is to be read and replace the manifest. Under the lock."""
    folder, options = task.folder, task.options
    if not plan.todo:
        return [], []
    with room_in(folder, lambda: remove_leftovers(folder, manifest_or_empty(folder))):
        remove_leftovers(folder, manifest)
        jobs, crew = rank_jobs(task, plan.todo)
        results, failures = run_jobs(jobs, crew, options.executor, options.progress)
        warn_of_mixed_clocks(results)
        entries = [entry_of(result, task.known.options) for result in results]
        if entries:
            now = manifest.with_entries(entries)
            check_spans(now.entries)
            settle(folder, entries)
            tagged = set(plan.runs(task)).intersection(now.runs())
            publish(folder, now.with_tags(tagged, task.tags))
    return entries, failures
