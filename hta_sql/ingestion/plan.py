"""What an ingest has to do: which traces it reads, which are in the store already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

import fsspec

from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.fingerprints import KnownTraces
from hta_sql.ingestion.rank import RankJob
from hta_sql.ingestion.running.workers import Progress, WorkerPlan, plan_workers
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.store.files import StoreFolder
from hta_sql.store.locks import LOCK_TIMEOUT_S
from hta_sql.store.manifest import TABLES
from hta_sql.store.runs import check_run_name, default_run_name, run_of_capture
from hta_sql.traces import Traces


@dataclass(frozen=True)
class Request:
    """What the caller of an ingest asked for; see :func:`hta_sql.ingest`."""

    traces: Traces
    run: str
    ranks: list[int] | None = None
    jobs: int | None = None
    force: bool = False
    strict: bool = False
    rank_regex: str | None = None
    kernel_classes: str | None = None
    memory_limit: str | None = None


def request_of(traces: Traces, run: str | None, ranks: Iterable[int] | None) -> Request:
    """Take the traces; they are looked at several times."""
    if not isinstance(traces, (str, Mapping)):
        traces = list(traces)
    name = check_run_name(run) if run else default_run_name(traces)
    return Request(traces, name, None if ranks is None else list(ranks))


@dataclass(frozen=True)
class Task:
    """A request, and everything that it is carried out with."""

    request: Request
    folder: StoreFolder
    known: KnownTraces
    executor: Executor | None = None
    progress: Progress | None = None
    lock_timeout: float = LOCK_TIMEOUT_S


@dataclass(frozen=True)
class Plan:
    """The traces that were found, and which of them are to be read."""

    found: list[TraceFile]
    todo: list[TraceFile] = field(default_factory=list)
    unchanged: list[TraceFile] = field(default_factory=list)

    def runs(self, name: str) -> list[str]:
        """List the runs that the traces are."""
        return sorted({run_of_capture(name, file.capture) for file in self.found})


def plan_ingest(task: Task) -> Plan:
    """Find the traces and compare them with what is known."""
    asked = task.request
    _forget_listings(asked.traces)
    found = discover(
        asked.traces, ranks=asked.ranks, rank_regex=asked.rank_regex, look=task.known.look
    )
    return compared(found, task)


def _forget_listings(traces: Traces) -> None:
    """Make object storages list anew: traces may have been replaced since this process looked.

    One listing then tells the sizes and ETags of a whole folder, with no request for a trace.
    """
    items = [traces] if isinstance(traces, str) else list(traces)
    paths = traces.values() if isinstance(traces, Mapping) else items
    for url in {str(path) for path in paths if "://" in str(path)}:
        fsspec.url_to_fs(url)[0].invalidate_cache()


def compared(found: list[TraceFile], task: Task) -> Plan:
    """Sort traces into those to be read and those that are in the store already."""
    plan = Plan(found)
    for file in found:
        run = run_of_capture(task.request.run, file.capture)
        is_current = not task.request.force and task.known.current(run, file)
        (plan.unchanged if is_current else plan.todo).append(file)
    return plan


def rank_jobs(
    task: Task, files: list[TraceFile], writer: str = ""
) -> tuple[list[RankJob], WorkerPlan]:
    """Make a job of each trace; returns them and what is to run them."""
    request = task.request
    plan = plan_workers([file.path for file in files], request.jobs, request.memory_limit)
    jobs = [
        RankJob(
            path=file.path,
            run=run_of_capture(request.run, file.capture),
            rank=file.rank,
            rank_source=file.rank_source,
            tables=task.folder.path(TABLES),
            threads=plan.threads,
            memory_limit=plan.memory_limit,
            kernel_classes=request.kernel_classes,
            strict=request.strict,
            writer=writer,
        )
        for file in files
    ]
    return jobs, plan


def share(found: list[TraceFile], number: int, of: int) -> list[TraceFile]:
    """Choose the traces of one shard: the largest first, each to the shard with least so far.

    Every job of an array computes this for itself, so it depends on names and sizes alone.
    """
    sizes = {file.path: _size(file.path) for file in found}
    loads = [0] * of
    mine = []
    for file in sorted(found, key=lambda file: (-sizes[file.path], file.path)):
        least = loads.index(min(loads))
        loads[least] += sizes[file.path] + 1
        if least == number - 1:
            mine.append(file)
    return sorted(mine, key=lambda file: (file.capture, file.rank))


def _size(path: str) -> int:
    fs, name = fsspec.url_to_fs(path)
    return int(fs.size(name) or 0)
