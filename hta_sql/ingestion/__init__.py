"""Traces ─▶ Parquet and manifest: discover, one job per rank on an Executor, publish."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from hta_sql.errors import StoreNotFoundError, TraceError
from hta_sql.ingestion.discover import TraceFile, Traces, discover
from hta_sql.ingestion.publish import entry_of, is_current, remove_leftovers, store_lock
from hta_sql.ingestion.rank import RankJob, RankResult
from hta_sql.ingestion.runs import check_run_name, default_run_name, run_of_capture
from hta_sql.ingestion.workers import plan_workers, run_jobs
from hta_sql.manifest import TABLES, Manifest, read_manifest, write_manifest

__all__ = ["IngestReport", "RankResult", "Traces", "ingest_traces"]

log = logging.getLogger(__name__)

Progress = Callable[[RankResult, int, int], None]
"""Called after each rank with (result, ranks done, ranks to do)."""


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did: the ranks it read, those it found unchanged, and the runs."""

    results: list[RankResult]
    unchanged: list[TraceFile]
    runs: list[str]


def ingest_traces(
    traces: Traces,
    store: Path,
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
) -> IngestReport:
    """Read traces into the store; see :func:`hta_sql.ingest`, which adds the catalog."""
    found = discover(traces, ranks=ranks, rank_regex=rank_regex)
    name = check_run_name(run) if run else default_run_name(traces)
    store.mkdir(parents=True, exist_ok=True)
    with store_lock(store):
        manifest = _manifest_or_empty(store)
        remove_leftovers(store, manifest)
        todo, unchanged = [], []
        for file in found:
            entry = manifest.entry(run_of_capture(name, file.capture), file.rank)
            if not force and entry and is_current(entry, file.path, kernel_classes):
                unchanged.append(file)
            else:
                todo.append(file)
        plan = plan_workers([file.path for file in todo], jobs, memory_limit)
        rank_jobs = [
            RankJob(
                path=file.path,
                run=run_of_capture(name, file.capture),
                rank=file.rank,
                rank_source=file.rank_source,
                tables=str(store.absolute() / TABLES),
                threads=plan.threads,
                memory_limit=plan.memory_limit,
                kernel_classes=kernel_classes,
                strict=strict,
            )
            for file in todo
        ]
        results, failures = run_jobs(rank_jobs, plan.workers, executor, progress)
        entries = [entry_of(result, kernel_classes) for result in results]
        write_manifest(store, manifest.with_entries(entries))
    if failures:
        raise TraceError(
            f"{len(failures)} of {len(found)} traces could not be ingested:\n"
            + "\n".join(f"  {failure}" for failure in failures)
            + (f"\nThe other {len(found) - len(failures)} are in the store." if results else "")
        )
    runs = sorted({run_of_capture(name, file.capture) for file in found})
    return IngestReport(results, unchanged, runs)


def _manifest_or_empty(store: Path) -> Manifest:
    try:
        return read_manifest(store)
    except StoreNotFoundError:
        return Manifest()
