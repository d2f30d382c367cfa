"""Two hand-written ranks, recorded twice each: two steps of 100 us per recording, a second apart.

All steps are equal, with ids and addresses that restart in each recording:

    us     0         10        30        50   60        80       100
    host   [ProfilerStep ............................................]
    .         [aten::mm 10-30] [c10d::allreduce_ 35-45]
    gpu    .                   [gemm 30-50]   [AllReduce 60-80; on rank 1 from 70]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BASE_NS = 1_700_000_000_000_000_000
GAP_US = 1_000_000
STEP_US = 100
Events = list[dict[str, Any]]


def write_spans(
    folder: Path,
    gap_us: int = GAP_US,
    first_steps: Sequence[int] = (1, 3),
    step: str = "ProfilerStep#",
) -> Path:
    """Write a trace file for each rank and recording."""
    folder.mkdir()
    for rank in range(2):
        for span, first_step in enumerate(first_steps):
            start = 1000 + span * gap_us
            trace = _trace(rank, _events(rank, start, step, first_step))
            (folder / f"rank{rank}-{span}.json").write_text(json.dumps(trace), encoding="utf-8")
    return folder


def _trace(rank: int, events: Events) -> dict[str, Any]:
    groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}]
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl", "pg_config": groups},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 4000}],
        "host_name": "node",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": events,
    }


def _events(rank: int, start: int, step: str, first_step: int) -> Events:
    # Allocated before the recording, and freed in its first step; the previous recording ends with the address in use.
    events = [_memory(start + 5, -100, 7, 500)]
    for number in range(2):
        ts = start + number * STEP_US
        events += _step(rank, ts, f"{step}{first_step + number}", 2 * number + 1)
    return [*events, _memory(start + 2 * STEP_US - 5, 100, 7, 600)]


def _step(rank: int, ts: int, name: str, correlation: int) -> Events:
    group = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
    message = {"In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", "Seq": correlation}
    collective: dict[str, Any] = {"Collective name": "allreduce"} | group | message
    late = 10 * rank
    return [
        _event("user_annotation", name, ts, STEP_US),
        _event("cpu_op", "aten::mm", ts + 10, 20, **{"External id": correlation}),
        _memory(ts + 12, 300, 1, 800),
        _event("cuda_runtime", "cudaLaunchKernel", ts + 15, 5, correlation=correlation),
        _memory(ts + 28, -300, 1, 500),
        _event("cpu_op", "c10d::allreduce_", ts + 35, 10, **{"External id": correlation + 1}),
        _event("cuda_runtime", "cudaLaunchKernel", ts + 38, 4, correlation=correlation + 1),
        _kernel("gemm", ts + 30, 20, 7, correlation),
        _kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ts + 60 + late,
            20 - late,
            20,
            correlation + 1,
            **collective,
        ),
    ]


def _event(category: str, name: str, ts: int, dur: int, **args: Any) -> dict[str, Any]:
    where = {"pid": 100, "tid": 1, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": category, "name": name, **where, "args": args}


def _kernel(
    name: str, ts: int, dur: int, stream: int, correlation: int, **args: Any
) -> dict[str, Any]:
    device = {"device": 0, "stream": stream, "correlation": correlation}
    event = _event("kernel", name, ts, dur, **device, **args)
    return event | {"pid": 0, "tid": stream}


def _memory(ts: int, size: int, address: int, total: int) -> dict[str, Any]:
    args = {
        "Device Type": 1,
        "Device Id": 0,
        "Bytes": size,
        "Addr": address,
        "Total Allocated": total,
    }
    instant = {"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 1, "ts": ts}
    return instant | {"cat": "cpu_instant_event", "args": args | {"Total Reserved": 1000}}
