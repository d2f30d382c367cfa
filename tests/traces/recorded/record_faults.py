"""Record tests/traces/recorded/faults with torch 2.13 (CPU build): ``record_faults.py FOLDER``.

Each of three jobs has one fault, which advice must list first: a data loader without workers and
with slow samples, a Python loop over the rows of a tensor, and an optimizer that updates many small
tensors one by one.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import torch
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


def record(job: Callable[[], None], path: Path) -> None:
    """Write the trace of a job, without data that identifies the machine."""
    raw = path.with_suffix(".raw")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=2, active=STEPS, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(raw)),
    ) as profiler:
        for _ in range(STEPS + 2):
            job()
            profiler.step()
    trace = json.loads(raw.read_text(encoding="utf-8"))
    raw.unlink()
    trace["host_name"] = "node-0"
    trace.pop("traceName", None)
    text = json.dumps(trace, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0))


def main(folder: Path) -> None:
    """Record the three jobs."""
    torch.set_num_threads(1)
    for make in (slow_loader, row_loop, unfused_optimizer):
        (folder / make.__name__).mkdir(parents=True, exist_ok=True)
        record(make(), folder / make.__name__ / "rank0.json.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
