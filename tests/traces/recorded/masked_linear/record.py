"""Record version1.json.gz to version3.json.gz with the CPU build of torch 2.13.

Run ``python record.py 1``, ``2`` and ``3``. The module comes from PyTorch's tutorial "Profiling
your PyTorch module": a linear layer, and a search for the positions where a mask exceeds a
threshold. The first two versions search with NumPy, so they copy the mask, which has dtype double
in the first version and float in the second. The third uses torch. The tutorial's module is on a
GPU, where ``mask.cpu()`` copies; here the copy is explicit. All sizes are known: SIDE ** 3
elements, of which FOUND are above the threshold.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule

STEPS = 3
SIDE = 128
THRESHOLD = 3 / 4
FOUND = SIDE**3 // 4 - 1
BATCH, INPUTS, OUTPUTS = 128, 512, 16


class MaskedLinear(nn.Module):  # type: ignore[misc]
    """A linear layer whose outputs for a batch of ones sum to THRESHOLD."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(INPUTS, OUTPUTS, bias=False)
        nn.init.constant_(self.linear.weight, THRESHOLD / (INPUTS * OUTPUTS))

    def forward(self, batch: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs, and the positions where the mask exceeds their sum."""
        with record_function("LINEAR PASS"):
            out = self.linear(batch)
        with record_function("MASK INDICES"):
            threshold = out.sum(axis=1).mean().item()
            return out, self.indices(mask, threshold)

    def indices(self, mask: torch.Tensor, threshold: float) -> torch.Tensor:
        """Return the positions with NumPy, which copies the mask and the result."""
        copied = mask.to("cpu", copy=True).numpy()
        return torch.from_numpy(np.argwhere(copied > threshold)).to("cpu", copy=True)


class MaskedLinearInTorch(MaskedLinear):
    """The third version, which searches with torch."""

    def indices(self, mask: torch.Tensor, threshold: float) -> torch.Tensor:
        """Return the positions with torch."""
        return (mask > threshold).nonzero()


def record(path: Path, model: nn.Module, mask: torch.Tensor) -> None:
    """Write the trace of three steps, without data that identifies the machine."""
    raw = path.with_suffix(".raw")
    batch = torch.ones(BATCH, INPUTS)
    with (
        profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=3, active=STEPS, repeat=1),
            profile_memory=True,
            with_stack=True,
            record_shapes=True,
            experimental_config=_ExperimentalConfig(verbose=True),  # operator stacks
            on_trace_ready=lambda p: p.export_chrome_trace(str(raw)),
        ) as profiler,
        torch.no_grad(),
    ):
        for _ in range(3 + STEPS):
            found = model(batch, mask)[1]
            assert found.shape == (FOUND, 3)
            profiler.step()
    trace = json.loads(raw.read_text(encoding="utf-8"))
    raw.unlink()
    trace["host_name"] = "node-0"
    trace.pop("traceName", None)
    text = json.dumps(trace, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0))


def main(version: int) -> None:
    """Record a version; each needs its own process, because memory is counted from its start."""
    torch.set_num_threads(1)
    mask = (torch.arange(SIDE**3, dtype=torch.double) / SIDE**3).reshape(SIDE, SIDE, SIDE)
    model = MaskedLinear() if version < 3 else MaskedLinearInTorch()
    path = Path(__file__).with_name(f"version{version}.json.gz")
    record(path, model, mask if version == 1 else mask.float())


if __name__ == "__main__":
    main(int(sys.argv[1]))
