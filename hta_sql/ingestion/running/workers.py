"""Runs rank jobs in processes, in threads, on a given Executor, or in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from hta_sql.errors import HtaSqlError, ParameterError, StoreError, TraceError
from hta_sql.exhausted import is_out_of_memory, is_out_of_threads, reason_of
from hta_sql.ingestion.rank import ingest_rank, ingest_ranks
from hta_sql.ingestion.rank_job import RankJob, RankResult
from hta_sql.ingestion.running.batches import in_batches, text_bytes
from hta_sql.ingestion.running.processes import process_pool
from hta_sql.ingestion.running.solo import run_alone
from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.store.disk.disk_space import is_disk_full

log = logging.getLogger(__name__)

SMALL_BYTES = 128 << 10
"""(Compressed) input [bytes] below which one worker is as fast as several."""

PROCESS_BYTES = 8 << 20
"""(Compressed) input per worker [bytes] above which processes are worthwhile.

Each process costs 0.33 s of CPU to start. Below this size, threads are as fast, because the engine
releases the GIL.
"""

FEW_WORKERS = 4
"""Number of workers up to which threads are as fast as processes, and use only 2/3 of the memory.

An eighth of the work on a rank holds the GIL. Measured with eight ranks of 130 MB on two cores.
"""

THREAD_BYTES = 256 << 20
"""Maximum text of a trace that is read in a thread [bytes].

A larger trace is read in a separate process. If it runs out of memory, other traces are not
affected, and it can be killed when the ingest is interrupted.
"""

Progress = Callable[[RankResult, int, int], None]
"""Called after each rank with (result, ranks done, total ranks)."""


@dataclass(frozen=True)
class Failure:
    """A trace that could not be read: message and error."""

    message: str
    error: BaseException


@dataclass(frozen=True)
class WorkerPlan:
    """Number of workers, and the resources of each."""

    workers: int
    threads: int
    memory_limit: str
    in_processes: bool = True

    def chosen(self, given: Executor | None) -> AbstractContextManager[Executor | None]:
        """Return the executor of the jobs: the caller's, or threads if no trace is large.

        None stands for processes, or for this process if one worker is enough.
        """
        if given is not None or self.in_processes or self.workers == 1:
            return nullcontext(given)
        return ThreadPoolExecutor(self.workers)


def plan_workers(
    sizes: Mapping[str, int], jobs: int | None, engine_memory: str | None
) -> WorkerPlan:
    """Divide cores and memory among the workers; there are at most as many workers as traces.

    An explicit number of jobs selects processes: a process that dies affects only its own trace.

    Args:
        sizes: Path of each trace ─▶ its (compressed) size [bytes].
        jobs: Number of workers; None: chosen by cores and sizes.
        engine_memory: Memory limit of each worker's engine; None: a share of the machine's memory.

    Raises:
        ParameterError: jobs is not positive.
    """
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs must be at least 1, not {jobs}.")
    cores = cpu_count()
    workers = min(jobs or cores, len(sizes) or 1)
    total = sum(sizes.values())
    if jobs is None and total < SMALL_BYTES:
        workers = 1
    largest = max((text_bytes(path, size) for path, size in sizes.items()), default=0)
    in_threads = jobs is None and (
        total < PROCESS_BYTES * workers or (workers <= FEW_WORKERS and largest <= THREAD_BYTES)
    )
    threads = max(1, cores // workers)
    limit = engine_memory or duckdb_memory_limit(workers)
    return WorkerPlan(workers, threads, limit, in_processes=not in_threads)


def run_jobs(
    jobs: list[RankJob], plan: WorkerPlan, given: Executor | None, progress: Progress | None
) -> tuple[list[RankResult], list[Failure]]:
    """Run all jobs; return the results and the failures.

    A worker that dies breaks its whole pool. The unfinished jobs then run again, one at a time, to
    identify the job that kills its worker.

    Raises:
        OSError: The disk is full; other jobs would fail in the same way.
    """
    done = _Done(len(jobs), progress)
    batches = [[job] for job in jobs] if given else in_batches(jobs, plan.workers, plan.threads)
    with plan.chosen(given) as executor:
        _run(batches, plan.workers, executor, done)
    return sorted(done.results, key=lambda r: (r.job.run, r.job.rank)), done.failures


def _run(
    batches: list[list[RankJob]], workers: int, executor: Executor | None, done: _Done
) -> None:
    if executor is not None:
        done.collect(executor, batches)
        for job in done.lost:
            done.attempt(job, partial(_alone_on, executor, job))
    elif workers <= 1 or sum(map(len, batches)) <= 1:
        for batch in batches:
            done.take(batch, ingest_ranks(batch))
    else:
        with process_pool(workers) as pool:
            done.collect(pool, batches)
        for job in done.lost:
            done.attempt(job, partial(run_alone, ingest_rank, job, job.path))


def raise_failures(failures: list[Failure], total: int) -> None:
    """Raise if traces could not be read.

    Raises:
        TraceError: A trace could not be read; the message lists the failures.
    """
    if not failures:
        return
    landed = total - len(failures)
    raise TraceError(
        f"{len(failures)} of {total} traces could not be ingested:\n"
        + "\n".join(f"  {failure.message}" for failure in failures)
        + (f"\nThe other {landed} are in the store." if landed else "")
    ) from failures[0].error


def _alone_on(executor: Executor, job: RankJob) -> RankResult:
    """Run a job alone, in a local process if the executor is broken."""
    try:
        return executor.submit(ingest_rank, job).result()
    except BrokenExecutor:
        return run_alone(ingest_rank, job, job.path)


def _is_lost(error: BaseException) -> bool:
    """Return whether an error means that the worker died, rather than that the job failed.

    Dask raises KilledWorker for a task whose workers died several times.
    """
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


class _Done:
    """Results, failures and lost jobs so far."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.results: list[RankResult] = []
        self.failures: list[Failure] = []
        self.lost: list[RankJob] = []
        self._total = total
        self._progress = progress

    def collect(self, executor: Executor, batches: list[list[RankJob]]) -> None:
        """Run batches concurrently; jobs whose worker died are added to ``lost``.

        Raises:
            StoreError: The executor cancelled all jobs, for example because Dask's scheduler is
                gone.
        """
        futures: dict[Future[Any], list[RankJob]] = {}
        for batch in batches:
            try:
                # An executor may retry a task that raises, so single jobs are submitted as such.
                if len(batch) == 1:
                    futures[executor.submit(ingest_rank, batch[0])] = batch
                else:
                    futures[executor.submit(ingest_ranks, batch)] = batch
            except BrokenExecutor:
                self.lost += batch
        try:
            for future in as_completed(futures):
                if future.cancelled():
                    raise StoreError(
                        "The executor cancelled the tasks: its scheduler is gone, or the executor "
                        "was stopped. Run the same ingest again to resume."
                    )
                batch, error = futures[future], future.exception()
                if error is None:
                    result = future.result()
                    self.take(batch, [result] if len(batch) == 1 else result)
                elif _is_lost(error):
                    self.lost += batch
                else:
                    self.take(batch, [error] * len(batch))
        finally:
            for future in futures:
                future.cancel()

    def take(self, batch: list[RankJob], outcomes: Sequence[RankResult | BaseException]) -> None:
        """Record the outcome of each job of a batch."""
        for job, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, RankResult):
                self._add(outcome)
            else:
                self._fail(job, outcome)

    def attempt(self, job: RankJob, run: Callable[[], RankResult]) -> None:
        """Run one job, and record its outcome."""
        try:
            result = run()
        except Exception as error:  # noqa: BLE001 - recorded as a failure; other traces continue
            self._fail(job, error)
        else:
            self._add(result)

    def _fail(self, job: RankJob, error: BaseException) -> None:
        if is_disk_full(error):
            raise error
        if is_out_of_threads(error) or is_out_of_memory(error):
            raise StoreError(str(reason_of(error))) from error
        message = str(error)
        if not isinstance(error, HtaSqlError):
            message = f"{type(error).__name__}: {message.partition(chr(10))[0]}"
        if job.path not in message:
            message = f"{job.path}: {message}"
        self.failures.append(Failure(message, error))

    def _add(self, result: RankResult) -> None:
        self.results.append(result)
        job = result.job
        log.info(
            "Ingested %s as run %s rank %d: %d events in %.2f s.",
            job.path,
            job.run,
            job.rank,
            result.event_count,
            result.seconds,
        )
        if self._progress:
            self._progress(result, len(self.results), self._total)
