"""A trace with rows for every table, small enough to be corrupted at every position."""

from __future__ import annotations

import json
from typing import Any

Event = dict[str, Any]

HEADER: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85899345920, "numSms": 132},
        {"id": 1, "name": "NVIDIA H100", "totalGlobalMem": 85899345920, "numSms": 132},
    ],
    "distributedInfo": {
        "rank": 1,
        "world_size": 2,
        "backend": "nccl",
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1], "pg_size": 2}],
    },
}
TRAILER: dict[str, Any] = {"traceName": "small.json", "baseTimeNanoseconds": 1727000000000000000}


def complete(cat: str, name: str, tid: int, ts: float, dur: float, **args: Any) -> Event:
    """Return a complete event (``ph: X``) of process 7."""
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 7,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def _device(cat: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    return complete(cat, name, 7, ts, dur, device=0, stream=7, context=1, **args) | {"pid": 0}


EVENTS: list[Event] = [
    {"name": "process_name", "ph": "M", "ts": 1000.0, "pid": 7, "tid": 0, "args": {"name": "py"}},
    complete("user_annotation", "ProfilerStep#1", 7, 1000.0, 50.0, **{"External id": 1}),
    complete("python_function", "nn.Module: Net", 7, 1000.5, 40.0, **{"Python id": 1}),
    complete(
        "cpu_op",
        "aten::mm",
        7,
        1001.25,
        10.0,
        **{"External id": 2, "Input Dims": [[8, 8], [8, 8], []], "Sequence number": 5},
    ),
    complete("cuda_runtime", "cudaLaunchKernel", 7, 1002.0, 3.0, correlation=11, cbid=211),
    {"ph": "s", "id": 11, "pid": 7, "tid": 7, "ts": 1002.0, "cat": "ac2g", "name": "ac2g"},
    _device(
        "kernel",
        "sm80_gemm<4, [true]>",
        1010.125,
        4.5,
        correlation=11,
        grid=[1, 2, 3],
        block=[128, 1, 1],
        **{"blocks per SM": 0.75, "registers per thread": 32, "queued": 0},
    ),
    {
        "ph": "f",
        "id": 11,
        "bp": "e",
        "pid": 0,
        "tid": 7,
        "ts": 1010.125,
        "cat": "ac2g",
        "name": "a",
    },
    complete("cuda_runtime", "cudaMemcpyAsync", 7, 1016.0, 2.0, correlation=12, cbid=41),
    _device("gpu_memcpy", "Memcpy HtoD", 1018.0, 1.5, correlation=12, bytes=4096),
    {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 7,
        "tid": 7,
        "ts": 1020.0,
        "args": {"Addr": 140240000000, "Bytes": 512, "Device Type": 1, "Device Id": 0},
    },
    {"ph": "C", "name": "queue", "pid": 7, "ts": 1021.0, "args": {"depth": 3, "free": 1.5}},
    complete(
        "brand_new", 'quotes " and \\ backslashes, é, \t, {"ph": "X"}, ], 10:05', 7, 1022.0, 1
    ),
    complete("cpu_op", "aten::add", 8, 1023.0, 2.0, unknown={"deep": [1, {"name": None}]}),
    {"ph": "i", "s": "g", "name": "Iteration Start", "pid": "Traces", "tid": "Trace", "ts": 1050.0},
]


def document(events: list[Event] | None = None, **options: Any) -> bytes:
    """Return the trace as JSON bytes; the options are passed to json.dumps."""
    events = EVENTS if events is None else events
    whole = {**HEADER, "traceEvents": events, **TRAILER}
    return json.dumps(whole, **options).encode()
