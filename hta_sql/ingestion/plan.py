"""The plan of an ingest: its traces, how to read them, the target store, and the remaining work."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from hta_sql.ingestion.artifacts.reading import engine_memory
from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.fingerprints import KnownTraces
from hta_sql.ingestion.options import IngestOptions
from hta_sql.ingestion.rank_job import RankJob
from hta_sql.ingestion.roles import DiscoveredRoles, RequestedRole, requested_roles
from hta_sql.ingestion.running.workers import Progress, WorkerPlan, plan_workers
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.machine import engine_share
from hta_sql.store.catalog.ingest_target import Contents, IngestTarget
from hta_sql.store.catalog.run_tags import checked_tags
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import TABLES, RankEntry
from hta_sql.store.disk.run_names import check_run_name, default_run_name, run_of_capture
from hta_sql.store.disk.spans import ARTIFACTS
from hta_sql.traces import TraceNames, Traces
from hta_sql.traces.source import file_bytes, located

if TYPE_CHECKING:
    from concurrent.futures import Executor

SMALL_TRACE_BYTES = 4 << 20
"""Maximum (compressed) size of a trace that is read in the shared engine of the process [bytes]."""


@dataclass(frozen=True)
class IngestPlan:
    """Plan of an ingest: its options, validated and resolved once.

    Attributes:
        traces: Location of the traces.
        ranks: The ranks to read; None: all.
        rank_regex: Regular expression that matches the rank in a file name.
        join_spans: Whether several files of a rank are spans of one run.
        one_job: Whether to treat the traces as one job, whatever they state.
        force: Whether to ingest traces that the store already has.
        known: Traces in the store, and their fingerprints.
        jobs: Number of workers; None: chosen by cores and sizes.
        engine_memory: Memory limit of each worker's engine, such as ``"1GiB"``; None: a share of
            the machine's memory.
        executor: Executor that reads the ranks; None: threads or processes.
        kernel_classes: Path of a CSV file with the user's own rules.
        captures: Location of traces of graph captures; None: only those among the traces.
        roles: Roles that the caller requests for traces.
        strict: Whether to reject a trace with any defect.
        progress: Called after each rank.
        target: Store and run to which the ingest writes.
    """

    traces: TraceNames
    ranks: list[int] | None
    rank_regex: str | None
    join_spans: bool
    one_job: bool
    force: bool
    known: KnownTraces
    jobs: int | None
    engine_memory: str | None
    executor: Executor | None
    kernel_classes: str | None
    captures: TraceNames | None
    roles: list[RequestedRole]
    strict: bool
    progress: Progress | None
    target: IngestTarget

    def run_and_span(self, file: TraceFile) -> tuple[str, int]:
        """Return the run of a trace, and the number of its span in that run."""
        if self.join_spans and file.kind == "trace":
            return self.target.run, file.capture
        spans: dict[str, int] = {kind: span for span, kind in ARTIFACTS.items()}
        return run_of_capture(self.target.run, file.capture), spans.get(file.kind, 0)


@dataclass(frozen=True)
class Work:
    """The traces that were found, and the action for each."""

    found: list[TraceFile]
    runs: list[str]
    """The runs of the traces."""
    todo: list[TraceFile] = field(default_factory=list)
    unchanged: list[RankEntry] = field(default_factory=list)
    resumed: list[RankEntry] = field(default_factory=list)
    """Ranks that an interrupted ingest has read; they are published like newly read ranks."""


def plan_ingest(options: IngestOptions) -> IngestPlan:
    """Validate and resolve the options: names, paths and the folder of the store.

    Raises:
        ParameterError: A run name, a tag or the memory limit is not valid.
    """
    traces = _names(options.traces)
    return IngestPlan(
        traces=traces,
        ranks=None if options.ranks is None else list(options.ranks),
        rank_regex=options.rank_regex,
        join_spans=options.join_spans,
        one_job=options.one_job,
        force=options.force,
        known=KnownTraces(options.kernel_classes),
        jobs=options.jobs,
        executor=options.executor,
        kernel_classes=os.fspath(options.kernel_classes) if options.kernel_classes else None,
        captures=None if options.captures is None else _names(options.captures),
        roles=requested_roles(options.role),
        strict=options.strict,
        progress=options.progress,
        target=IngestTarget(
            folder=store_folder(options.store),
            run=check_run_name(options.run) if options.run else default_run_name(traces),
            tags=checked_tags(options.tags),
            lock_timeout=options.lock_timeout,
            all_or_nothing=options.all_or_nothing,
            materialize=options.materialize,
            derived=options.derived,
        ),
        engine_memory=engine_share(options.memory_limit) if options.memory_limit else None,
    )


def _names(traces: Traces) -> TraceNames:
    """Convert the traces that a caller passes, such as a path object or an iterator, to names."""
    if isinstance(traces, os.PathLike):
        return os.fspath(traces)
    if isinstance(traces, Mapping):
        return {rank: os.fspath(path) for rank, path in traces.items()}
    return traces if isinstance(traces, str) else [os.fspath(path) for path in traces]


def work_of(plan: IngestPlan, contents: Contents) -> Work:
    """Find the traces and compare them with the store."""
    plan.known.learn([*contents.published, *contents.unpublished])
    _forget_listings(plan.traces)
    found = discover(
        plan.traces,
        ranks=plan.ranks,
        rank_regex=plan.rank_regex,
        look=plan.known.look,
        join_spans=plan.join_spans,
        one_job=plan.one_job,
        captures=plan.captures,
        roles=DiscoveredRoles(
            plan.roles,
            partial(plan.known.role, plan.target.run),
            partial(plan.known.roles, plan.target.run),
        ),
    )
    work = compared(plan, found)
    # If an ingest ended before it could clean up, its ranks are both published and unpublished.
    published = contents.manifest.entries
    resumed = [e for e in work.unchanged if e in contents.unpublished and e not in published]
    unchanged = [entry for entry in work.unchanged if entry not in resumed]
    return Work(found, work.runs, work.todo, unchanged, resumed)


def compared(plan: IngestPlan, found: list[TraceFile]) -> Work:
    """Divide traces into traces to read and unchanged traces."""
    work = Work(found, sorted({plan.run_and_span(file)[0] for file in found}))
    for file in found:
        entry = plan.known.current(*plan.run_and_span(file), file)
        if entry and not plan.force:
            work.unchanged.append(entry)
        else:
            work.todo.append(file)
    return work


def _forget_listings(traces: TraceNames) -> None:
    """Invalidate cached listings of object storage, because traces may have been replaced.

    One new listing then gives the sizes and ETags of a whole folder, without a request per trace.
    """
    items = [traces] if isinstance(traces, str) else list(traces)
    paths = traces.values() if isinstance(traces, Mapping) else items
    for url in {str(path) for path in paths if "://" in str(path)}:
        located(url)[0].invalidate_cache()


def rank_jobs(
    plan: IngestPlan, files: Sequence[TraceFile], writer: str = ""
) -> tuple[list[RankJob], WorkerPlan]:
    """Return a job for each trace, and the plan of the workers that run the jobs."""
    # Call file_bytes once per trace, because at a URL each call is a request.
    sizes = {file.path: file_bytes(file.path) for file in files}
    workers = plan_workers(sizes, plan.jobs, plan.engine_memory)
    jobs = [
        RankJob(
            path=file.path,
            run=run,
            rank=file.rank,
            rank_source=file.rank_source,
            tables=plan.target.folder.path(TABLES),
            threads=workers.threads,
            memory_limit=engine_memory(
                workers.memory_limit, sizes[file.path] if file.kind == "snapshot" else 0
            ),
            kernel_classes=plan.kernel_classes,
            captures=file.captures,
            kernel_files=file.kernel_files,
            strict=plan.strict,
            process=file.stated.process if file.stated else None,
            end_ns=file.stated.end_ns if file.stated else None,
            pid=file.stated.pid if file.stated else None,
            span=span,
            role=file.role,
            role_source=file.role_source,
            first_rank=file.first_rank,
            writer=writer,
            size=sizes[file.path],
            is_small=plan.engine_memory is None and sizes[file.path] <= SMALL_TRACE_BYTES,
        )
        for file in files
        for run, span in [plan.run_and_span(file)]
    ]
    return jobs, workers


def share(found: list[TraceFile], number: int, of: int) -> list[TraceFile]:
    """Return the traces of one shard: each trace, largest first, goes to the least loaded shard.

    Each job of a job array computes this independently, so it depends only on names and sizes.
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
