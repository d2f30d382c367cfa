"""Record tests/traces/recorded/gloo with the CPU build of torch 2.13: ``record_gloo.py FOLDER``.

The job has four ranks, with tensor-parallel pairs [0,1] and [2,3] and data-parallel pairs [0,2] and
[1,3]. In each layer, rank 2 computes one more matrix product than the others.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 8


def step(rank: int, tp: dist.ProcessGroup, dp: dist.ProcessGroup) -> None:
    """Run two layers, reduce the gradients, and use gloo's other collectives."""
    small, large = torch.randn(64, 64), torch.randn(900, 900)
    for _ in range(2):
        out = small @ small
        if rank == 2:
            large @ large
        dist.all_reduce(out, group=tp)
    dist.all_reduce(torch.ones(1024), group=dp)
    dist.all_gather([torch.empty(256) for _ in range(4)], torch.ones(256))
    dist.all_to_all_single(torch.empty(8), torch.ones(8))
    if rank == 0:
        dist.send(torch.ones(128), 3)
    if rank == 3:
        dist.recv(torch.empty(128), 0)
    dist.barrier()


def main(rank: int, folder: str) -> None:
    """Run one rank and write its trace, without data that identifies the machine."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=4)
    tp = [dist.new_group(ranks, group_desc="tp") for ranks in ([0, 1], [2, 3])][rank // 2]
    dp = [dist.new_group(ranks, group_desc="dp") for ranks in ([0, 2], [1, 3])][rank % 2]
    path = Path(folder, f"rank{rank}.json")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=STEPS),
        record_shapes=True,
        on_trace_ready=lambda p: p.export_chrome_trace(str(path)),
    ) as profiler:
        for _ in range(STEPS + 1):
            step(rank, tp, dp)
            profiler.step()
    dist.destroy_process_group()
    trace = json.loads(path.read_text(encoding="utf-8"))
    trace["host_name"] = "node-0"
    trace.pop("traceName", None)
    path.unlink()
    text = json.dumps(trace, separators=(",", ":")).encode()
    path.with_suffix(".json.gz").write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    mp.spawn(main, args=(sys.argv[1],), nprocs=4)
