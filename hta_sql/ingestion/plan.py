"""What an ingest has to do: which traces it reads, which are in the store already."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.fingerprints import KnownTraces
from hta_sql.ingestion.options import IngestOptions
from hta_sql.ingestion.rank import RankJob
from hta_sql.ingestion.running.workers import WorkerPlan, plan_workers
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.catalog.run_tags import checked_tags
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.manifest import TABLES, Manifest, RankEntry
from hta_sql.store.disk.run_names import check_run_name, default_run_name, run_of_capture
from hta_sql.traces import TraceNames
from hta_sql.traces.source import file_bytes, located

SMALL_TRACE_BYTES = 4 << 20
"""(Compressed) size up to which a trace is read in the engine that the process has."""


@dataclass(frozen=True)
class Task:
    """What an ingest was asked for, and what it is carried out with."""

    options: IngestOptions
    traces: TraceNames
    run: str
    ranks: list[int] | None
    folder: StoreFolder
    known: KnownTraces
    tags: dict[str, str]

    def place_of(self, file: TraceFile) -> tuple[str, int]:
        """Say which run a trace belongs to, and which span of its rank it is there."""
        if self.options.join_spans:
            return self.run, file.capture
        return run_of_capture(self.run, file.capture), 0


def task_of(options: IngestOptions) -> Task:
    """Name the run, and take the traces and ranks: they are looked at several times.

    Raises:
        ParameterError: A bad run name or tag.
    """
    traces = options.traces
    if isinstance(traces, os.PathLike):
        traces = os.fspath(traces)
    elif not isinstance(traces, (str, Mapping)):
        traces = list(traces)
    return Task(
        options,
        traces=traces,
        run=check_run_name(options.run) if options.run else default_run_name(traces),
        ranks=None if options.ranks is None else list(options.ranks),
        folder=store_folder(options.store),
        known=KnownTraces(options.kernel_classes),
        tags=checked_tags(options.tags),
    )


@dataclass(frozen=True)
class Plan:
    """The traces that were found, and which of them are to be read."""

    found: list[TraceFile]
    todo: list[TraceFile] = field(default_factory=list)
    unchanged: list[RankEntry] = field(default_factory=list)
    resumed: list[RankEntry] = field(default_factory=list)
    """What an interrupted ingest has read: to be published as if it were read now."""

    def runs(self, task: Task) -> list[str]:
        """List the runs that the traces are."""
        return sorted({task.place_of(file)[0] for file in self.found})


def plan_ingest(task: Task, manifest: Manifest, unpublished: Sequence[RankEntry] = ()) -> Plan:
    """Find the traces and compare them with what the store has.

    Args:
        task: What was asked for.
        manifest: What the store has.
        unpublished: What an interrupted ingest has left there.
    """
    kept = intact(task.folder, unpublished)
    task.known.learn([*intact(task.folder, manifest.entries), *kept])
    _forget_listings(task.traces)
    options = task.options
    found = discover(
        task.traces,
        ranks=task.ranks,
        rank_regex=options.rank_regex,
        look=task.known.look,
        join_spans=options.join_spans,
    )
    plan = compared(found, task)
    # One that is published as well was left by an ingest that ended before it could clean up.
    resumed = [e for e in plan.unchanged if e in kept and e not in manifest.entries]
    unchanged = [entry for entry in plan.unchanged if entry not in resumed]
    return replace(plan, unchanged=unchanged, resumed=resumed)


def intact(folder: StoreFolder, entries: Sequence[RankEntry]) -> list[RankEntry]:
    """Keep the entries whose files are all there, all of each; others are to be read again."""
    files = [[(file["path"], file["bytes"]) for file in entry.files.values()] for entry in entries]
    there = folder.sizes([path for named in files for path, _ in named]).items()
    return [entry for entry, named in zip(entries, files, strict=True) if there >= set(named)]


def _forget_listings(traces: TraceNames) -> None:
    """Make object storages list anew: traces may have been replaced since this process looked.

    One listing then tells the sizes and ETags of a whole folder, with no request for a trace.
    """
    items = [traces] if isinstance(traces, str) else list(traces)
    paths = traces.values() if isinstance(traces, Mapping) else items
    for url in {str(path) for path in paths if "://" in str(path)}:
        located(url)[0].invalidate_cache()


def compared(found: list[TraceFile], task: Task) -> Plan:
    """Sort traces into those to be read and those that are in the store already."""
    plan = Plan(found)
    for file in found:
        entry = task.known.current(*task.place_of(file), file)
        if entry and not task.options.force:
            plan.unchanged.append(entry)
        else:
            plan.todo.append(file)
    return plan


def rank_jobs(
    task: Task, files: list[TraceFile], writer: str = ""
) -> tuple[list[RankJob], WorkerPlan]:
    """Make a job of each trace; returns them and what is to run them."""
    options = task.options
    plan = plan_workers([file.path for file in files], options.jobs, options.memory_limit)
    jobs = [
        RankJob(
            path=file.path,
            run=run,
            rank=file.rank,
            rank_source=file.rank_source,
            tables=task.folder.path(TABLES),
            threads=plan.threads,
            memory_limit=plan.memory_limit,
            kernel_classes=os.fspath(options.kernel_classes) if options.kernel_classes else None,
            strict=options.strict,
            process=file.stated.process if file.stated else None,
            end_ns=file.stated.end_ns if file.stated else None,
            span=span,
            writer=writer,
            is_small=options.memory_limit is None and file_bytes(file.path) <= SMALL_TRACE_BYTES,
        )
        for file in files
        for run, span in [task.place_of(file)]
    ]
    return jobs, plan


def share(found: list[TraceFile], number: int, of: int) -> list[TraceFile]:
    """Choose the traces of one shard: the largest first, each to the shard with least so far.

    Every job of an array computes this for itself, so it depends on names and sizes alone.
    """
    sizes = {file.path: file_bytes(file.path) for file in found}
    loads = [0] * of
    mine = []
    for file in sorted(found, key=lambda file: (-sizes[file.path], file.path)):
        least = loads.index(min(loads))
        loads[least] += sizes[file.path] + 1
        if least == number - 1:
            mine.append(file)
    return sorted(mine, key=lambda file: (file.capture, file.rank))
