"""Record tests/traces/recorded/memory_cpu_torch_2_13.json.gz with the CPU build of torch 2.13.

Run ``python record_memory.py FILE``. A network of known size is created and trained while memory is
recorded. Its parameters, their gradients and the optimizer's momentum have PARAMETERS numbers
each. Each step retains its output, like a program that logs tensors.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 4
BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 64, 256, 10
PARAMETERS = INPUTS * HIDDEN + HIDDEN + HIDDEN * OUTPUTS + OUTPUTS


class Network(nn.Module):  # type: ignore[misc]
    """Network with two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.second = nn.Linear(HIDDEN, OUTPUTS)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the outputs of a batch."""
        return self.second(torch.relu(self.first(batch)))


def train(network: nn.Module, optimizer: torch.optim.Optimizer, kept: list[torch.Tensor]) -> None:
    """Run one step, and retain its output."""
    outputs = network(torch.ones(BATCH, INPUTS))
    outputs.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(outputs.detach().clone())


def main(path: Path) -> None:
    """Train the network, and write the trace without data that identifies the machine."""
    torch.set_num_threads(1)
    kept: list[torch.Tensor] = []
    raw = path.with_suffix(".raw")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=0, active=STEPS, repeat=1),
        profile_memory=True,
        with_stack=True,
        record_shapes=True,
        on_trace_ready=lambda p: p.export_chrome_trace(str(raw)),
    ) as profiler:
        network = Network()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        for _ in range(STEPS):
            train(network, optimizer, kept)
            profiler.step()
    trace = json.loads(raw.read_text(encoding="utf-8"))
    raw.unlink()
    trace["host_name"] = "node-0"
    trace.pop("traceName", None)
    text = json.dumps(trace, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
