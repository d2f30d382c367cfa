"""Build steps that contain one planted problem of variable size, one kind for each advice rule."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

STEP_US = 100_000
Event = dict[str, Any]
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"


@dataclass
class Step:
    """One or more steps of 100 ms on a rank, plus an excluded last step. Times are in µs."""

    events: list[Event] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    launched: int = 0
    steps: int = 2

    def host(self, cat: str, name: str, ts: float, end: float, **args: Any) -> None:
        """Record an event on the main thread."""
        of = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "args": args}
        self.events.append(of | {"ts": ts, "dur": end - ts})

    def device(self, name: str, ts: float, end: float, **options: Any) -> None:
        """Record a kernel or copy, launched 2 µs before it runs unless ``options`` say otherwise.

        With ``op``, an operator launches it.
        """
        self.launched += 1
        launch = options.get("launch", ts - 2)
        stream, number = options.get("stream", 7), options.get("device", 0)
        kind = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        if "op" in options:
            self.host("cpu_op", options["op"], launch, launch + 1)
        self.host("cuda_runtime", "cudaLaunchKernel", launch, launch + 1, correlation=self.launched)
        args = {"device": number, "stream": stream, "correlation": self.launched}
        of = {"ph": "X", "cat": kind, "name": name, "pid": number, "tid": stream, "args": args}
        self.events.append(of | {"ts": ts, "dur": end - ts})

    def busy(self, ts: float, end: float) -> None:
        """Keep the device busy with a kernel that is launched as early as possible."""
        self.device("gemm_bf16", ts, end, launch=max(0, ts - 2))

    def trace(self) -> dict[str, Any]:
        """Return the contents of the trace file."""
        whole = replace(self, events=[*self.events])  # trace() may be called again
        for number in range(1, self.steps + 1):
            start = (number - 1) * STEP_US
            whole.host("user_annotation", f"ProfilerStep#{number}", start, start + STEP_US)
        return whole.facts | {"traceEvents": whole.events}


def gap(us: float, cat: str, name: str) -> Step:
    """Build a step in which the device waits at the start while the host is in one event."""
    step = Step()
    step.host(cat, name, 0, us)
    step.busy(us + 2, STEP_US)
    return step


def gaps(us: float, count: int) -> Step:
    """Build a step with many gaps, in each of which the host launches an operator."""
    step = Step()
    for number in range(count):
        ts = 2 + number * (us + 10)
        step.device("add", ts, ts + 10, launch=ts - 3, op="aten::add")
    step.busy(2 + count * (us + 10), STEP_US)
    return step


def synchronized(us: float) -> Step:
    """Build a step in which the host keeps waiting after the device has finished."""
    step = Step()
    step.device("gemm_bf16", 2, 40_000)
    step.host("cuda_runtime", "cudaStreamSynchronize", 10, 40_000 + us)
    step.busy(40_000 + us + 4, STEP_US)
    return step


def running(name: str, us: float, **options: Any) -> Step:
    """Build a step with one device operation, and computation before and after it."""
    step = Step()
    step.busy(2, 10_000)
    step.device(name, 10_000, 10_000 + us, launch=5, **options)
    step.busy(10_000 + us, STEP_US)
    return step


def attention(count: int) -> Step:
    """Build a step with a softmax between matrix products."""
    step = running("void softmax_warp_forward<float>", 4_000, op="aten::_softmax")
    for number in range(count):
        step.device("bmm_kernel", 50_000 + number, 50_001 + number, launch=9, op="aten::bmm")
    return step


def single_precision(name: str, major: int) -> Step:
    """Build a step of matrix products on a device with or without tensor cores."""
    step = running(name, 8_000, op="aten::mm")
    step.facts["deviceProperties"] = [{"id": 0, "name": "A GPU", "computeMajor": major}]
    return step


def small(us: float, count: int) -> Step:
    """Build a step with many elementwise kernels, one after another."""
    step = Step()
    for number in range(count):
        ts = 2 + number * us
        step.device(ELEMENTWISE, ts, ts + us, launch=max(0, ts - 2))
    step.busy(2 + count * us, STEP_US)
    return step


def annotated(name: str, kernel: str, us: float, count: int) -> Step:
    """Build a step with kernels that are launched inside an annotation."""
    step = Step()
    step.busy(2, 10_000)
    for number in range(count):
        ts = 10_000 + number * us
        step.device(kernel, ts, ts + us, launch=100 + number * 2)
    step.host("user_annotation", name, 99, 101 + count * 2)
    step.busy(10_000 + count * us, STEP_US)
    return step


def transfer(*, hidden: bool) -> Step:
    """Build a step with a collective that is either overlapped by computation or exposed."""
    step = running("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 6_000, stream=9)
    if hidden:
        step.device("gemm_bf16", 9_000, 17_000, launch=6)
    return step


def data_parallel(devices: int) -> Step:
    """Build a step in which one process uses multiple devices."""
    step = Step()
    step.host("cpu_op", "DataParallel.forward", 0, 50)
    for number in range(devices):
        step.device("gemm_bf16", 10 + number, STEP_US, launch=5 + number, device=number)
    return step


def communicating(backend: str) -> Step:
    """Build a step of one rank with a device, in a job of two ranks."""
    step = running("gemm_bf16", 10)
    step.facts["distributedInfo"] = {"backend": backend, "rank": 0, "world_size": 2}
    return step


def allocated(share: int) -> Step:
    """Build a step that reserves a given share of a device with 100 bytes of memory."""
    step = running("gemm_bf16", 10)
    step.facts["deviceProperties"] = [{"id": 0, "name": "A GPU", "totalGlobalMem": 100}]
    args = {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": share}
    args |= {"Total Allocated": share - 5, "Total Reserved": share}
    of = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
    step.events.append(of | {"ts": 20, "args": args})
    return step


def collected(us: float) -> Step:
    """Build a step in which the device waits at the start while Python collects garbage."""
    return gap(us, "python_function", "Python GC")


def selected(turns: int, us: float = 140) -> Step:
    """Build a step in which a Python loop selects and adds rows while the device waits.

    Other work follows the loop.
    """
    step = Step()
    for number in range(turns):
        ts = number * us
        step.host("cpu_op", "aten::select", ts, ts + us / 2)
        step.host("cpu_op", "aten::add", ts + us / 2, ts + us)
    step.host("cpu_op", "aten::cat", turns * us, turns * us + 10)
    step.busy(turns * us + 12, STEP_US)
    return step


def filled(maker: str, dims: str = "[[8, 8], []]") -> Step:
    """Build a step in which the host creates a tensor and copies it to the device."""
    step = Step()
    step.host("cpu_op", maker, 0, 700)
    step.host("cpu_op", "aten::zero_", 100, 700, **{"Input Dims": json.loads(dims)})
    step.host("cpu_op", "aten::to", 800, 1_202)
    step.host("cpu_op", "aten::_to_copy", 810, 1_201)
    step.device("Memcpy HtoD (Pinned -> Device)", 902, 1_200, op="aten::copy_")
    copies = step.events[-3]
    copies |= {"ts": 890, "dur": 310}
    copies["args"] = {"Input Dims": [[8, 8], [8, 8], []]}
    step.busy(1_210, STEP_US)
    return step


def shapes(lengths: list[int]) -> Step:
    """Build steps of matrix products whose row count differs from step to step."""
    step = Step()
    for number, length in enumerate(lengths):
        start = number * STEP_US
        args = {"Input Dims": [[length, 64], [64, 64]]}
        step.host("cpu_op", "aten::mm", start + 10, start + 20, **args)
        step.device("gemm_bf16", start + 2, start + STEP_US, launch=start)
    step.steps = len(lengths) + 1
    return step


def normalized(us: float) -> Step:
    """Build a step with a collective of a synchronized batch norm."""
    step = running("ncclDevKernel_AllGather_RING_LL", us, stream=9)
    step.host("cpu_op", "SyncBatchNorm", 4, 8)
    return step


def convolved(channels: int) -> Step:
    """Build a step with a convolution that has a bias of 16 channels, followed by a batch norm.

    Between them, the batch norm counts its batches.
    """
    step = Step()
    step.busy(2, 10_000)
    dims = [[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []]
    step.host("cpu_op", "aten::conv2d", 100, 200, **{"Input Dims": dims})
    step.device(ELEMENTWISE, 10_000, 10_600, launch=150, op="aten::add_")
    step.host("cpu_op", "aten::add_", 210, 215, **{"Input Dims": [[], [], []]})
    dims = [[8, channels, 30, 30], [channels], [channels]]
    step.host("cpu_op", "aten::batch_norm", 220, 230, **{"Input Dims": dims})
    step.busy(10_600, STEP_US)
    return step


def hosted(name: str, us: float, count: int = 1, op: str = "aten::mul") -> Step:
    """Build a step of a job without a device: operators in an annotation, and one after it."""
    step = Step()
    for number in range(count):
        step.host("cpu_op", op, 100 + number * us, 100 + (number + 1) * us)
    step.host("user_annotation", name, 99, 100 + count * us)
    step.host("cpu_op", "aten::mm", 200 + count * us, STEP_US)
    return step


def queued(us: float) -> Step:
    """Build a step with an operation that is launched long before it starts on an idle device."""
    step = Step()
    step.busy(2, 40_000)
    step.device("gemm_bf16", 40_000 + us, STEP_US, launch=20)
    return step


def unlinked(us: float) -> Step:
    """Build a step with an operation that follows idle time and has no launch in the trace."""
    step = Step()
    step.busy(2, 40_000)
    args = {"device": 0, "stream": 7}
    of = {"ph": "X", "cat": "kernel", "name": "gemm_bf16", "pid": 0, "tid": 7, "args": args}
    step.events.append(of | {"ts": 40_000 + us, "dur": STEP_US - 40_000 - us})
    return step


def products(us: float, count: int, rows: int, width: int) -> Step:
    """Build a step of 16-bit matrix products on an A100.

    Each product multiplies a matrix with the given number of rows by a square weight matrix.
    """
    step = Step()
    step.facts["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8}]
    dims = [[rows, width], [width, width]]
    for number in range(count):
        launch = 10 + number * 4
        types = ["c10::BFloat16", "c10::BFloat16"]
        step.host(
            "cpu_op",
            "aten::mm",
            launch - 1,
            launch + 2,
            **{"Input Dims": dims, "Input type": types},
        )
        ts = 20 + number * us
        step.device("ampere_bf16_s16816gemm_bf16_128x128", ts, ts + us, launch=launch)
    step.busy(20 + count * us, STEP_US)
    return step


def gathered(us: float, count: int, elements: int) -> Step:
    """Build a step of all-gathers on an H100, with computation before and after them.

    The other ranks of the group have no trace.
    """
    step = Step()
    step.facts["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9}]
    step.busy(2, 10_000)
    args = {"Collective name": "_allgather_base", "dtype": "Byte", "Group size": 8}
    args |= {"In msg nelems": elements // 8, "Out msg nelems": elements}
    for number in range(count):
        ts = 10_000 + number * us
        step.device(
            "ncclDevKernel_AllGather_RING_LL", ts, ts + us, launch=100 + number * 2, stream=9
        )
        step.events[-1]["args"] |= args
    step.busy(10_000 + count * us, STEP_US)
    return step


def delayed(short: int, us: float, wait_us: float) -> Step:
    """Build a step with three host delays, each below the threshold of its advice rule.

    The host is late in short gaps, in one operator, and in a call that waits.
    """
    step = Step()
    for number in range(short):
        ts = 2 + number * 130
        step.device("add", ts, ts + 10, launch=ts - 3, op="aten::add")
    now: float = 2 + short * 130
    step.device("gemm_bf16", now, now + 1_000, launch=now - 3)
    step.host("cpu_op", "aten::unique", now + 1_000, now + 1_000 + us)
    now += 1_000 + us
    step.device("gemm_bf16", now + 2, now + 10_000, launch=now)
    now += 10_000
    step.host("cuda_runtime", "cudaStreamSynchronize", now - 5_000, now + wait_us)
    step.busy(now + wait_us + 4, STEP_US)
    return step
