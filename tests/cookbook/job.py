"""The job in docs/cookbook.md: two ranks and three steps, whose times are chosen by hand.

Times are in µs from the start of a step, and steps are 1,000 µs long. :class:`Plan` has the
parameters.

====================  ==========  =================================  =======================
host                  thread      inside                             device
====================  ==========  =================================  =======================
forward   [ 10, 210)  main        Linear_0: aten::linear, addmm      gemm_fwd, stream 7
                                   Attention_0: sdpa                  flash_fwd, stream 7
backward  [220, 420)  main; the   aten::mm                           gemm_bwd, stream 7
                       op: autograd
           [430, 480)  main        c10d::allreduce_                   AllReduce, stream 20
optimizer [490, 560)  main        aten::add_                         elementwise, stream 7
           [570, 600)  main        aten::copy_                        copy to the device, stream 24
           [700, 900)  main        cudaDeviceSynchronize
====================  ==========  =================================  =======================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.shared_stores import ingest_only

Event = dict[str, Any]

STEPS = 3
MAIN, AUTOGRAD = 100, 200
COPY_BYTES = 1_000_000
ELEMENTS = 500_000
GROUP = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2}


@dataclass(frozen=True)
class Plan:
    """Differences between runs, steps and ranks: durations [µs] and numbering of collectives."""

    gemm_forward: int = 80
    first_step_extra: int = 100
    slow_rank: int = 1
    slow_rank_extra: int = 120
    numbers_collectives: bool = True


def write_job(folder: Path, plan: Plan) -> Path:
    """Write one trace per rank, and return the folder."""
    folder.mkdir(parents=True)
    for rank in range(2):
        info = {"backend": "nccl", "rank": rank, "world_size": 2, "pg_config": [GROUP]}
        devices = [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80_000_000_000}]
        events = [e for step in range(STEPS) for e in _step(plan, rank, step)]
        trace = {
            "schemaVersion": 1,
            "deviceProperties": devices,
            "distributedInfo": info,
            "record_shapes": 1,
            "profile_memory": 1,
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "traceEvents": events,
        }
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return folder


def ingest_cookbook(folder: Path) -> Path:
    """Ingest a run ``before``, and a run ``after`` whose forward GEMM takes half the time."""
    store = folder / "cookbook.store"
    for run, plan in (("before", Plan()), ("after", Plan(gemm_forward=40))):
        ingest_only(write_job(folder / run, plan), store, run=run)
    return store


def _step(plan: Plan, rank: int, step: int) -> list[Event]:
    """Return all events of one step. In the first step, a longer kernel delays the later ones."""
    late = plan.first_step_extra if step == 0 else 0
    forward = plan.gemm_forward + late
    backward = 120 + (plan.slow_rank_extra if rank == plan.slow_rank else 0)
    reduce_start = max(460, 260 + late + backward + 10)
    place = _Place(rank, step)
    return [
        place.host("user_annotation", f"ProfilerStep#{step + 1}", 0, 1000),
        place.host("user_annotation", "forward", 10, 200),
        place.host("python_function", "nn.Module: Linear_0", 20, 80, {"Python id": 1}),
        place.host("cpu_op", "aten::linear", 30, 60, _shapes([32, 64], [128, 64], [128])),
        place.host("cpu_op", "aten::addmm", 40, 40, _shapes([128], [32, 64], [64, 128])),
        place.memory(45, 8192, 8192),
        *place.launch(50, 8, "gemm_fwd", 7, 60, forward),
        place.host("python_function", "nn.Module: Attention_0", 110, 90, {"Python id": 2}),
        place.host("cpu_op", "aten::scaled_dot_product_attention", 120, 70, _shapes([1, 8, 32, 8])),
        *place.launch(130, 6, "flash_fwd", 7, 140 + late, 60),
        place.host("user_annotation", "backward", 220, 200),
        place.host("cpu_op", "aten::mm", 230, 70, _shapes([64, 32], [32, 128]), tid=AUTOGRAD),
        *place.launch(240, 6, "gemm_bwd", 7, 260 + late, backward, tid=AUTOGRAD),
        place.host("cpu_op", "c10d::allreduce_", 430, 50),
        *place.launch(
            *(440, 10, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20),
            *(reduce_start, 560 + late - reduce_start),
            args=_collective(plan, step),
        ),
        place.host("user_annotation", "optimizer", 490, 70),
        place.host("cpu_op", "aten::add_", 500, 50, _shapes([128, 64], [128, 64])),
        *place.launch(510, 4, "elementwise", 7, 550 + late, 30),
        place.host("cpu_op", "aten::copy_", 570, 30),
        *place.launch(
            *(575, 15, "Memcpy HtoD (Pinned -> Device)", 24, 590 + late, 20),
            category="gpu_memcpy",
            call="cudaMemcpyAsync",
            args={"bytes": COPY_BYTES, "memory bandwidth (GB/s)": 50.0},
        ),
        place.memory(650, -8192, 0),
        place.host("cuda_runtime", "cudaDeviceSynchronize", 700, 200, {"correlation": 0}),
    ]


def _shapes(*shapes: list[int]) -> Event:
    return {"Input Dims": list(shapes), "Input type": ["float"] * len(shapes)}


def _collective(plan: Plan, step: int) -> Event:
    number = {"Seq": step + 1} if plan.numbers_collectives else {}
    return {
        "Collective name": "allreduce",
        "In msg nelems": ELEMENTS,
        "Out msg nelems": ELEMENTS,
        "dtype": "BFloat16",
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": "[0, 1]",
        **number,
    }


class _Place:
    """Builder of the events of one step on one rank."""

    def __init__(self, rank: int, step: int) -> None:
        self._pid = 10 + rank
        self._start = 1000 * step
        self._ids = count(100 * step + 1)

    def host(  # noqa: PLR0917 - what an event has
        self,
        category: str,
        name: str,
        ts: int,
        dur: int,
        args: Event | None = None,
        tid: int = MAIN,
    ) -> Event:
        """Build an event on a host thread."""
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": self._pid,
            "tid": tid,
            "ts": self._start + ts,
            "dur": dur,
            "args": args or {},
        }

    def launch(  # noqa: PLR0917 - what a launch and its device activity have
        self,
        ts: int,
        dur: int,
        name: str,
        stream: int,
        device_ts: int,
        device_dur: int,
        *,
        tid: int = MAIN,
        category: str = "kernel",
        call: str = "cudaLaunchKernel",
        args: Event | None = None,
    ) -> list[Event]:
        """Build a launch call and the device operation that it launches."""
        correlation = next(self._ids)
        place = {"device": 0, "stream": stream, "correlation": correlation}
        return [
            self.host("cuda_runtime", call, ts, dur, {"correlation": correlation}, tid),
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 0,
                "tid": stream,
                "ts": self._start + device_ts,
                "dur": device_dur,
                "args": place | (args or {}),
            },
        ]

    def memory(self, ts: int, size: int, total: int) -> Event:
        """Build an allocation event, or a free event if the size is negative."""
        args = {
            "Addr": 1,
            "Bytes": size,
            "Device Type": 1,
            "Device Id": 0,
            "Total Allocated": total,
        }
        return {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": self._pid,
            "tid": MAIN,
            "ts": self._start + ts,
            "args": args | {"Total Reserved": 1_000_000},
        }
