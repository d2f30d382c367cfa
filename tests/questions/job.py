"""A step of 1 ms on one GPU with known times, on which the questions in the docs are answered.

The host loads data until 200 us. model.py multiplies two 1024 x 1024 matrices (300 us on the
device) and applies a ReLU (40 us). train.py then reads a value. The device is idle from 560 us
until 650 us, when it starts an addition that ends at 940 us.
"""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]

SHAPES = [[1024, 1024], [1024, 1024]]
OUTPUT_BYTES = 4 * 1024 * 1024


def host(cat: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    """Return an event on the training loop's thread."""
    of = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1}
    return of | {"ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, correlation: int) -> Event:
    """Return a kernel event."""
    args = {"device": 0, "stream": 7, "correlation": correlation}
    of = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7}
    return of | {"ts": ts, "dur": dur, "args": args}


def memory(ts: float, address: int, size: int, allocated: int) -> Event:
    """Return an allocator event of the device."""
    args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size}
    args |= {"Total Allocated": allocated, "Total Reserved": 3 * OUTPUT_BYTES}
    of = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
    return of | {"ts": ts, "args": args}


def trace() -> dict[str, Any]:
    """Return the content of the trace file."""
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    product = {"Input Dims": SHAPES, "Input type": ["float", "float"], "External id": 1}
    events = [
        host("user_annotation", "ProfilerStep#1", 0, 1000),
        host("user_annotation", "ProfilerStep#2", 1000, 10),
        host("python_function", "train.py(10): main", 0, 1000, **{"Python id": 1}),
        host("user_annotation", loader, 0, 200),
        host(
            "python_function",
            "model.py(20): forward",
            200,
            220,
            **{"Python id": 2, "Python parent id": 1},
        ),
        host("cpu_op", "aten::mm", 210, 20, **product),
        memory(211, 1, OUTPUT_BYTES, OUTPUT_BYTES),
        host("cuda_runtime", "cudaLaunchKernel", 215, 1, correlation=1),
        host("cpu_op", "aten::relu", 240, 10, **{"External id": 2}),
        memory(241, 2, OUTPUT_BYTES, 2 * OUTPUT_BYTES),
        host("cuda_runtime", "cudaLaunchKernel", 243, 1, correlation=2),
        host("cpu_op", "aten::item", 430, 185, **{"External id": 3}),
        host("cuda_runtime", "cudaStreamSynchronize", 435, 175, correlation=9),
        host("cpu_op", "aten::add", 640, 10, **{"External id": 4}),
        host("cuda_runtime", "cudaLaunchKernel", 645, 1, correlation=3),
        memory(700, 1, -OUTPUT_BYTES, OUTPUT_BYTES),
        memory(701, 2, -OUTPUT_BYTES, 0),
        kernel("ampere_sgemm_128x64_tn", 220, 300, 1),
        kernel("void at::native::vectorized_elementwise_kernel<4, relu>", 520, 40, 2),
        kernel("void at::native::vectorized_elementwise_kernel<4, add>", 650, 290, 3),
    ]
    device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    device |= {"numSms": 108, "totalGlobalMem": 80_000_000_000}
    return {"deviceProperties": [device], "traceEvents": events}
