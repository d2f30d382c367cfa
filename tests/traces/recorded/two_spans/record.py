"""Record the traces in this folder, two spans of one process, with the CPU build of torch 2.13.

``python record.py`` records steps 2 and 3, then 6 and 7, with schedule(wait=1, warmup=1, active=2,
repeat=2). tensorboard_trace_handler writes a file for each span, named after the worker and the
time of writing.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

WAIT, WARMUP, ACTIVE, REPEAT = 1, 1, 2, 2


def main(folder: Path) -> None:
    """Write the traces, without data that identifies the machine."""
    torch.set_num_threads(1)
    model, batch = nn.Linear(64, 16), torch.ones(32, 64)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=REPEAT),
        profile_memory=True,
        record_shapes=True,
        on_trace_ready=tensorboard_trace_handler(str(folder), worker_name="node-0_4711"),
    ) as profiler:
        for _ in range(REPEAT * (WAIT + WARMUP + ACTIVE)):
            model(batch).sum().backward()
            profiler.step()
    for path in folder.glob("*.pt.trace.json"):
        trace = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        trace["host_name"] = "node-0"
        trace.pop("traceName", None)
        text = json.dumps(trace, separators=(",", ":")).encode()
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main(Path(__file__).parent)
