"""Runs rank jobs on processes, on a given Executor, or right here."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from threading import Lock
from types import ModuleType
from typing import Any

import fsspec

from hta_sql.errors import HtaSqlError, ParameterError
from hta_sql.ingestion.rank import RankJob, RankResult, ingest_rank
from hta_sql.machine import cpu_count, duckdb_memory_limit

log = logging.getLogger(__name__)

SMALL_BYTES = 2 << 20
"""Below this much (compressed) input, starting processes costs more than they save."""

Progress = Callable[[RankResult, int, int], None]


@dataclass(frozen=True)
class WorkerPlan:
    """How many processes, and how much of the machine each of them gets."""

    workers: int
    threads: int
    memory_limit: str


def plan_workers(paths: list[str], jobs: int | None, memory_limit: str | None) -> WorkerPlan:
    """Share cores and memory between as many processes as there are traces for.

    Raises:
        ParameterError: jobs is not positive.
    """
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs must be at least 1, not {jobs}.")
    cores = cpu_count()
    workers = min(jobs or cores, len(paths) or 1)
    if jobs is None and sum(map(_size, paths)) < SMALL_BYTES:
        workers = 1
    threads = max(1, cores // workers)
    return WorkerPlan(workers, threads, memory_limit or duckdb_memory_limit(workers))


def _size(path: str) -> int:
    fs, name = fsspec.url_to_fs(path)
    return int(fs.size(name) or 0)


def run_jobs(
    jobs: list[RankJob], workers: int, executor: Executor | None, progress: Progress | None
) -> tuple[list[RankResult], list[str]]:
    """Run all jobs; returns the results and one line for each that failed.

    A worker that dies takes the others of its pool with it, so what was not
    done by then runs again, each job alone: the one that kills is found out.
    """
    done = _Done(len(jobs), progress)
    if executor is not None:
        done.collect(executor, jobs)
    elif workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            done.attempt(job, partial(ingest_rank, job))
    else:
        largest_first = sorted(jobs, key=lambda job: -_size(job.path))
        with _pool(workers) as pool:
            done.collect(pool, largest_first)
        for job in done.lost:
            with _pool(1) as pool:
                done.attempt(job, pool.submit(ingest_rank, job).result)
    return sorted(done.results, key=lambda r: (r.job.run, r.job.rank)), done.failures


class _Worker(SpawnProcess):
    """A process that does not run the caller's script again.

    A spawned process imports the main script, so that an ingest in a script without
    ``if __name__ == "__main__"`` would start itself over in every worker. Workers need nothing
    of it: while one starts, an empty module stands for the script.
    """

    @staticmethod
    def _Popen(process: BaseProcess) -> Any:  # noqa: N802 - multiprocessing's hook
        with _STARTING:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process)  # noqa: SLF001
            finally:
                sys.modules["__main__"] = script


class _Spawn(SpawnContext):
    # spawn: forking a process that has DuckDB threads deadlocks.
    Process = _Worker


_STARTING = Lock()


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=_Spawn())


class _Done:
    """What became of the jobs so far."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.results: list[RankResult] = []
        self.failures: list[str] = []
        self.lost: list[RankJob] = []
        self._total = total
        self._progress = progress

    def collect(self, executor: Executor, jobs: list[RankJob]) -> None:
        futures: dict[Future[RankResult], RankJob] = {
            executor.submit(ingest_rank, job): job for job in jobs
        }
        for future in as_completed(futures):
            try:
                self._add(future.result())
            except BrokenProcessPool:
                self.lost.append(futures[future])
            except HtaSqlError as error:
                self.failures.append(str(error))

    def attempt(self, job: RankJob, run: Callable[[], RankResult]) -> None:
        try:
            self._add(run())
        except BrokenProcessPool:
            self.failures.append(f"{job.path}: the process that read it died (out of memory?).")
        except HtaSqlError as error:
            self.failures.append(str(error))

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
