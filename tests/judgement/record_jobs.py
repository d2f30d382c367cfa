"""Record training jobs of two gloo ranks, some with a fault: ``record_jobs.py FOLDER PLAN.json``.

It runs under an interpreter with the CPU build of torch, and imports nothing of this project. The
plan is a list of jobs (:class:`tests.judgement.recorded.Planned`). Per step and rank, the truth holds
the time that the rank itself was busy or held up, measured by the operating system and not by the
profiler: CPU time of the training thread, its time in the run queue, and the sleeps that were planted.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

RANKS = 2
WARM_UP = 2


class Sleeps:
    """Sleeps that are planted, and how long they took [ns]."""

    def __init__(self) -> None:
        self.total_ns = 0

    def sleep(self, seconds: float) -> None:
        """Sleep, and count the time."""
        began = time.perf_counter_ns()
        time.sleep(seconds)
        self.total_ns += time.perf_counter_ns() - began


class Samples(Dataset[torch.Tensor]):  # type: ignore[misc]  # torch is not installed here
    """Samples of a step, of which each takes a given time to load."""

    def __init__(self, width: int, count: int, seconds: float, sleeps: Sleeps) -> None:
        self.width, self.count, self.seconds, self.sleeps = width, count, seconds, sleeps

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        """Load a sample."""
        if self.seconds:
            self.sleeps.sleep(self.seconds)
        return torch.randn(self.width)


def busy_ns() -> int:
    """Return the CPU time of this thread and its time in the run queue [ns]."""
    on_cpu, waiting, _ = Path("/proc/thread-self/schedstat").read_text(encoding="utf-8").split()
    return int(on_cpu) + int(waiting)


def sleeping_hook(fault: str, seconds: float, sleeps: Sleeps) -> Callable[..., Any]:
    """Return a communication hook of DDP that sleeps before it reduces a bucket."""

    def hook(_: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        if fault == "communication hook" or bucket.is_last():
            sleeps.sleep(seconds)
        work = dist.all_reduce(bucket.buffer().div_(RANKS), async_op=True)
        return work.get_future().then(lambda reduced: reduced.value()[0])

    hook.__annotations__.clear()  # DDP refuses annotations that are not evaluated
    return hook


def spin(cpu: int) -> None:
    """Compute on a CPU without end."""
    os.sched_setaffinity(0, {cpu})
    while True:
        pass


def train(job: dict[str, Any], rank: int, path: str) -> dict[str, list[int]]:
    """Record a rank of a job; return the busy and the whole time of its steps [ns]."""
    torch.manual_seed(job["seed"])
    is_late = rank == job["late_rank"]
    fault, seconds = (job["fault"], job["seconds"]) if is_late else ("none", 0.0)
    width, rows, sleeps = job["width"], job["rows"], Sleeps()
    layers = [torch.nn.Linear(width, width) for _ in range(job["layers"])]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.5)
    if fault in ("communication hook", "bucket hook"):
        model.register_comm_hook(None, sleeping_hook(fault, seconds, sleeps))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    per_sample = seconds / rows if fault == "data loading" else 0.0
    loaded = Samples(width, rows * (job["steps"] + WARM_UP), per_sample, sleeps)
    batches = iter(DataLoader(loaded, batch_size=rows))
    kept = [[at] for at in range(int(seconds * 2e7))] if fault == "garbage collection" else []
    other = None
    if fault == "contention":
        other = multiprocessing.get_context("spawn").Process(target=spin, args=(rank,), daemon=True)
        other.start()
    busy, walls = [], []
    dist.barrier()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=WARM_UP, active=job["steps"]),
        with_stack=job["with_stack"],
        on_trace_ready=lambda done: done.export_chrome_trace(path),
    ) as profiler:
        for at in range(job["steps"] + WARM_UP):
            began, busy_before, slept_before = time.perf_counter_ns(), busy_ns(), sleeps.total_ns
            is_first = at == WARM_UP + job["fault_step"]
            batch = next(batches)
            if fault == "longer sequences":
                batch = batch.repeat(1 + job["repeats"], 1)
            if fault == "sleep" or (fault == "sleep once" and is_first):
                sleeps.sleep(seconds)
            if fault == "garbage collection":
                gc.collect()
            if fault == "checkpoint" and is_first:
                pickle.dumps([bytes(10)] * int(seconds * 1e8))
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            if at >= WARM_UP:
                busy.append(busy_ns() - busy_before + sleeps.total_ns - slept_before)
                walls.append(time.perf_counter_ns() - began)
            profiler.step()
    if other:
        other.kill()
    del kept
    return {"busy_ns": busy, "step_ns": walls}


def main(rank: int, folder: str, plan: str) -> None:
    """Record all jobs as one rank, on a CPU of its own where there are two."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    os.sched_setaffinity(0, {rank % (os.cpu_count() or 1)})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    for job in json.loads(Path(plan).read_text(encoding="utf-8")):
        of_job = Path(folder, job["name"])
        of_job.mkdir(exist_ok=True)
        truth = train(job, rank, str(of_job / f"rank{rank}.json"))
        (of_job / f"truth{rank}.txt").write_text(json.dumps(truth), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, args=(sys.argv[1], sys.argv[2]), nprocs=RANKS)
