"""The way of an ingest: plan, read each rank, publish."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from hta_sql.ingestion.consistency import warn_of_mixed_clocks
from hta_sql.ingestion.disk_space import is_disk_full, room_in
from hta_sql.ingestion.options import IngestOptions
from hta_sql.ingestion.plan import Plan, Task, plan_ingest, rank_jobs, task_of
from hta_sql.ingestion.publish import entry_of, settle
from hta_sql.ingestion.rank import RankResult
from hta_sql.ingestion.running.workers import Failure, Progress, raise_failures, run_jobs
from hta_sql.ingestion.spans import check_spans
from hta_sql.store.catalog.materialize import keep_answers, publish
from hta_sql.store.catalog.run_tags import tag_runs
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import Manifest, RankEntry, manifest_or_empty
from hta_sql.store.disk.orphaned_files import Unfinished, remove_leftovers, unfinished
from hta_sql.store.disk.reports import IngestReport
from hta_sql.text import counted

log = logging.getLogger(__name__)


def ingest_traces(options: IngestOptions) -> IngestReport:
    """Read traces into a store; see :func:`hta_sql.ingest`, which opens it.

    Raises:
        TraceError: Some traces could not be read; the others are in the store.
    """
    task = task_of(options)
    before = manifest_or_empty(task.folder)
    plan = plan_ingest(task, before, _unpublished(task))
    read: list[RankEntry] = []
    if plan.todo or plan.resumed:
        with store_lock(task.folder, options.lock_timeout):
            manifest = manifest_or_empty(task.folder)
            if manifest != before or plan.resumed:
                # Another ingest was there first; it may have done all of this one's work.
                plan = plan_ingest(task, manifest, _unpublished(task))
            read, failures = read_and_publish(task, plan, manifest)
        raise_failures(failures, len(plan.todo) + len(plan.unchanged) + len(plan.resumed))
    if task.tags and not (read or plan.resumed):
        tag_runs(task.folder, plan.runs(task), task.tags, lock_timeout=options.lock_timeout)
    report = IngestReport(read, plan.unchanged, plan.runs(task), plan.resumed)
    if options.materialize:
        keep_answers(task.folder, runs=report.runs, lock_timeout=options.lock_timeout)
    return report


def _unpublished(task: Task) -> list[RankEntry]:
    return [] if task.options.all_or_nothing else unfinished(task.folder, task.run)


def read_and_publish(
    task: Task, plan: Plan, manifest: Manifest
) -> tuple[list[RankEntry], list[Failure]]:
    """Read what is to be read and replace the manifest. Under the lock."""
    folder, options = task.folder, task.options
    if not plan.todo and not plan.resumed:
        return [], []
    left = Unfinished(folder, task.run)
    with room_in(folder, lambda: remove_leftovers(folder, manifest_or_empty(folder))):
        left.keep(plan.resumed)
        remove_leftovers(folder, manifest)
        jobs, crew = rank_jobs(task, plan.todo)
        with _keeping(task, left) as progress:
            results, failures = run_jobs(jobs, crew, options.executor, progress)
        warn_of_mixed_clocks(results)
        entries = [entry_of(result, task.known.options) for result in results]
        if entries or plan.resumed:
            now = manifest.with_entries([*plan.resumed, *entries])
            check_spans(now.entries)
            settle(folder, entries)
            tagged = set(plan.runs(task)).intersection(now.runs())
            publish(folder, now.with_tags(tagged, task.tags))
            left.keep([])
    return entries, failures


@contextmanager
def _keeping(task: Task, left: Unfinished) -> Iterator[Progress | None]:
    """Keep the ranks that are read inside of this, where it does not come to its end."""
    if task.options.all_or_nothing:
        yield task.options.progress
        return
    try:
        yield partial(_after_rank, task, left)
    except BaseException as error:
        if not is_disk_full(error):
            left.save()
            kept = unfinished(task.folder, task.run)
            if kept:
                log.warning(
                    "Interrupted: %s kept, not to be seen yet; the same ingest again goes on from there.",
                    f"{counted(len(kept), 'rank')} {'is' if len(kept) == 1 else 'are'}",
                )
        raise


def _after_rank(task: Task, left: Unfinished, result: RankResult, done: int, total: int) -> None:
    left.add(entry_of(result, task.known.options))
    if task.options.progress:
        task.options.progress(result, done, total)
