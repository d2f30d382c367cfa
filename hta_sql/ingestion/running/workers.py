"""Runs rank jobs on processes, on a given Executor, or right here."""

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
from hta_sql.ingestion.rank import RankJob, RankResult, ingest_rank
from hta_sql.ingestion.running.batches import in_batches, text_bytes
from hta_sql.ingestion.running.processes import process_pool
from hta_sql.ingestion.running.solo import run_alone
from hta_sql.ingestion.together import ingest_together
from hta_sql.machine import cpu_count, duckdb_memory_limit
from hta_sql.store.disk.disk_space import is_disk_full

log = logging.getLogger(__name__)

SMALL_BYTES = 128 << 10
"""Below this much (compressed) input one worker is as fast."""

PROCESS_BYTES = 8 << 20
"""(Compressed) input per worker from which processes pay: each costs a third of a second of CPU
to start. Below it threads do as well, because the engine works outside the GIL."""

FEW_WORKERS = 4
"""So many threads do as well as processes, and in two thirds of their memory: an eighth of the work on
a rank holds the GIL. Measured with eight ranks of 130 MB on two cores."""

THREAD_BYTES = 256 << 20
"""Text of the largest trace that is read in a thread. More is read by a process, which may die alone
where memory runs out, and need not be waited for when all is interrupted."""

Progress = Callable[[RankResult, int, int], None]
"""Called after each rank with (result, ranks done, ranks to do)."""


@dataclass(frozen=True)
class Failure:
    """A trace that could not be read: what to say of it, and the error."""

    message: str
    error: BaseException


@dataclass(frozen=True)
class WorkerPlan:
    """How many workers, and how much of the machine each of them gets."""

    workers: int
    threads: int
    memory_limit: str
    in_processes: bool = True

    def chosen(self, given: Executor | None) -> AbstractContextManager[Executor | None]:
        """Choose what the jobs run on: the caller's, else threads for traces that are not large.

        None stands for processes, or for right here where one worker is enough.
        """
        if given is not None or self.in_processes or self.workers == 1:
            return nullcontext(given)
        return ThreadPoolExecutor(self.workers)


def plan_workers(
    sizes: Mapping[str, int], jobs: int | None, engine_memory: str | None
) -> WorkerPlan:
    """Share cores and memory between as many workers as there are traces for.

    A given number of jobs means processes: one that dies takes only its trace with it.

    Args:
        sizes: Path of each trace ─▶ its (compressed) size [bytes].
        jobs: Number of workers; None: by cores and sizes.
        engine_memory: Memory of the engine of each; None: its share of the machine.

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
    """Run all jobs; returns the results and the failures.

    A worker that dies takes the others of its pool with it, so what was not
    done by then runs again, each job alone: the one that kills is found out.

    Raises:
        OSError: The disk is full; the others would fail likewise.
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
            done.take(batch, ingest_together(batch))
    else:
        with process_pool(workers) as pool:
            done.collect(pool, batches)
        for job in done.lost:
            done.attempt(job, partial(run_alone, ingest_rank, job, job.path))


def raise_failures(failures: list[Failure], total: int) -> None:
    """Say which of so many traces could not be read.

    Raises:
        TraceError: At least one could not.
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
    """Run a job while no other one runs; in a process of ours where the executor is broken."""
    try:
        return executor.submit(ingest_rank, job).result()
    except BrokenExecutor:
        return run_alone(ingest_rank, job, job.path)


def _is_lost(error: BaseException) -> bool:
    """Say whether it was a worker that died, not the job that failed.

    Dask has a name of its own for that: a task that was on several workers when they died.
    """
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


class _Done:
    """What became of the jobs so far."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.results: list[RankResult] = []
        self.failures: list[Failure] = []
        self.lost: list[RankJob] = []
        self._total = total
        self._progress = progress

    def collect(self, executor: Executor, batches: list[list[RankJob]]) -> None:
        """Run batches at once; the jobs of those whose worker died become lost.

        Raises:
            StoreError: The executor has given all of them up, as where Dask's scheduler is gone.
        """
        futures: dict[Future[Any], list[RankJob]] = {}
        for batch in batches:
            try:
                # What is raised for one that is alone, an executor may try again.
                if len(batch) == 1:
                    futures[executor.submit(ingest_rank, batch[0])] = batch
                else:
                    futures[executor.submit(ingest_together, batch)] = batch
            except BrokenExecutor:
                self.lost += batch
        try:
            for future in as_completed(futures):
                if future.cancelled():
                    raise StoreError(
                        "The executor has cancelled what it was given: its scheduler is gone, or "
                        "somebody stopped it. The same ingest again goes on from there."
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
        """Note what came of each job of a batch."""
        for job, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, RankResult):
                self._add(outcome)
            else:
                self._fail(job, outcome)

    def attempt(self, job: RankJob, run: Callable[[], RankResult]) -> None:
        """Run one job now."""
        try:
            result = run()
        except Exception as error:  # noqa: BLE001 - reported; one trace must not stop the others
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
