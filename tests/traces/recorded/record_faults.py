"""Record tests/traces/recorded/faults with torch 2.13 (CPU build): ``record_faults.py FOLDER``.

Each job has one fault, which advice must list first: a data loader without workers and with slow
samples, a Python loop over the rows of a tensor, an optimizer that updates many small tensors one by
one, a line of Python that computes without operators, and a rank of two that does the same before a
gloo all-reduce. For the last two, the script prints how long the fault takes in each recorded step.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

STEPS = 2
"""Number of recorded steps; analyses exclude the last one."""


class SlowSamples(Dataset):  # type: ignore[misc]
    """Dataset whose samples take 2 ms each to load."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, place: int) -> torch.Tensor:
        """Return a sample."""
        time.sleep(0.002)
        return torch.full((64,), float(place))


def slow_loader() -> Callable[[], None]:
    """Return a step that loads eight slow samples and computes little."""
    network = nn.Linear(64, 64)
    batches: Iterator[torch.Tensor] = cycle(DataLoader(SlowSamples(), batch_size=8))

    def step() -> None:
        network(next(batches)).square().mean()

    return step


def row_loop() -> Callable[[], None]:
    """Return a step that scales a table row by row."""
    table, weights = torch.ones(40, 64), torch.ones(40, 64)

    def step() -> None:
        for row in range(40):
            table[row].mul_(weights[row])
        table.sum()

    return step


def unfused_optimizer() -> Callable[[], None]:
    """Return a step that trains ten small layers and updates their twenty tensors one by one."""
    network = nn.Sequential(*[nn.Linear(4, 4) for _ in range(10)])
    optimizer = torch.optim.Adam(network.parameters(), foreach=False)
    batch = torch.ones(8, 4)

    def step() -> None:
        network(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def score(text: str) -> int:
    """Return a number that takes a while to compute."""
    total = 0
    for letter in text:
        total = (31 * total + (letter == "a")) % 1000
    return total


def spinning_line() -> Callable[[], None]:
    """Return a step that computes a number in Python and writes how long that takes."""
    network, batch, text = nn.Linear(64, 64), torch.ones(8, 64), "abcdefgh" * 30_000

    def step() -> None:
        network(batch).square().mean().backward()
        start = time.perf_counter_ns()
        score(text)
        sys.stdout.write(f"spinning_line {time.perf_counter_ns() - start}\n")

    return step


def late_rank(rank: int, folder: str) -> None:
    """Record a rank of two; rank 1 computes a number in Python before each all-reduce."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    small, text = torch.ones(64, 64), "abcdefgh" * 30_000

    def step() -> None:
        start = time.perf_counter_ns()
        if rank == 1:
            score(text)
        sys.stdout.write(f"late_rank {rank} {time.perf_counter_ns() - start}\n")
        dist.all_reduce(small @ small)

    record(step, Path(folder) / f"rank{rank}.json.gz", steps=6)
    dist.destroy_process_group()


def record(
    job: Callable[[], None], path: Path, *, steps: int = STEPS, with_stack: bool = False
) -> None:
    """Write the trace of a job, without data that identifies the machine."""
    raw = path.with_suffix(".raw")
    with profile(
        activities=[ProfilerActivity.CPU],
        with_stack=with_stack,
        schedule=schedule(wait=0, warmup=2, active=steps, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(raw)),
    ) as profiler:
        for _ in range(steps + 2):
            job()
            profiler.step()
    trace = json.loads(raw.read_text(encoding="utf-8"))
    raw.unlink()
    trace["host_name"] = "node-0"
    trace.pop("traceName", None)
    text = json.dumps(trace, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0))


def main(folder: Path) -> None:
    """Record the jobs."""
    torch.set_num_threads(1)
    for make in (slow_loader, row_loop, unfused_optimizer, spinning_line):
        (folder / make.__name__).mkdir(parents=True, exist_ok=True)
        path = folder / make.__name__ / "rank0.json.gz"
        record(make(), path, with_stack=make is spinning_line)
    (folder / "late_rank").mkdir(parents=True, exist_ok=True)
    mp.spawn(late_rank, args=(str(folder / "late_rank"),), nprocs=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
