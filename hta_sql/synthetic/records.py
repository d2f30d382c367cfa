"""Define the records of the simulator, in simulated nanoseconds.

`args` is the JSON text of an event's further arguments. The text is created once per kind of
operator, because encoding equal dicts a million times would dominate the run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GpuKind = Literal["kernel", "gpu_memcpy", "gpu_memset"]
GpuClass = Literal["computation", "communication", "memory"]

COMPUTE_STREAM = 7
COPY_STREAM = 21
FIRST_COMM_STREAM = 31

CALLS = {
    "cudaLaunchKernel": ("cuda_runtime", 211, 4_300),
    "cudaLaunchKernelExC": ("cuda_runtime", 430, 6_100),
    "cudaGraphLaunch": ("cuda_runtime", 311, 28_000),
    "cudaMemcpyAsync": ("cuda_runtime", 41, 5_900),
    "cudaMemsetAsync": ("cuda_runtime", 51, 3_700),
    "cudaEventRecord": ("cuda_runtime", 135, 900),
    "cudaStreamWaitEvent": ("cuda_runtime", 147, 1_100),
    "cudaStreamSynchronize": ("cuda_runtime", 131, 2_500),
    "cuLaunchKernelEx": ("cuda_driver", 652, 5_200),
}
"""Category, CUPTI's `cbid` and typical duration of the calls of a job."""

LAUNCHES = frozenset(name for name in CALLS if "Launch" in name or "Async" in name)
"""Calls that queue work on a stream."""


@dataclass(slots=True)
class HostEvent:
    """A span on a CPU thread: an operator or an annotation."""

    category: str
    name: str
    thread: int
    ts: int
    dur: int
    external_id: int
    args: str


@dataclass(slots=True)
class PythonFrame:
    """A span of the Python tracer."""

    name: str
    thread: int
    ts: int
    dur: int
    id: int
    parent: int | None
    module_id: int | None


@dataclass(slots=True)
class RuntimeCall:
    """A call to the CUDA runtime or driver."""

    category: str
    name: str
    cbid: int
    thread: int
    ts: int
    dur: int
    correlation: int
    external_id: int
    launches: bool
    """Whether the call launches GPU work, so that a flow event starts here."""
    recorded: bool = True
    """Whether the call is in the trace."""


@dataclass(slots=True)
class FlowPoint:
    """One end of a forward-backward arrow: phase `s` or `f`."""

    phase: str
    id: int
    thread: int
    ts: int


@dataclass(slots=True)
class MemoryInstant:
    """An allocation (bytes > 0) or a release (bytes < 0) on the GPU."""

    thread: int
    ts: int
    address: int
    bytes: int
    allocated: int
    reserved: int


@dataclass(slots=True)
class SyncEvent:
    """A device-side synchronization."""

    name: str
    stream: int
    ts: int
    dur: int
    correlation: int
    args: str


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective operation, identical on every participating rank."""

    step: int
    index: int
    seq: int
    group: int
    elements: int
    transfer_ns: int


@dataclass(slots=True)
class GpuOp:
    """Work on a stream: the host sets what to run, and the device sets the times."""

    kind: GpuKind
    group: GpuClass
    name: str
    stream: int
    work_ns: int
    correlation: int
    external_id: int
    call: RuntimeCall | None
    scopes: tuple[HostEvent, ...]
    """Open annotations of the launching thread."""
    args: str = ""
    bytes: int = 0
    collective: Collective | None = None
    ready_ns: int = 0
    ts: int = 0
    dur: int = 0

    @property
    def launch(self) -> RuntimeCall | None:
        """The launch call if the trace contains it, otherwise None."""
        return self.call if self.call is not None and self.call.recorded else None


@dataclass(slots=True)
class StreamWait:
    """A wait of `stream` for all work queued on `awaited` so far."""

    stream: int
    awaited: int


@dataclass(slots=True)
class StepTrace:
    """All events of one rank in one profiler step."""

    number: int
    ts: int = 0
    dur: int = 0
    host: list[HostEvent] = field(default_factory=list)
    python: list[PythonFrame] = field(default_factory=list)
    flows: list[FlowPoint] = field(default_factory=list)
    memory: list[MemoryInstant] = field(default_factory=list)
    calls: list[RuntimeCall] = field(default_factory=list)
    queue: list[GpuOp | StreamWait] = field(default_factory=list)
    syncs: list[SyncEvent] = field(default_factory=list)

    def gpu_ops(self) -> list[GpuOp]:
        """Return the GPU operations in launch order."""
        return [entry for entry in self.queue if isinstance(entry, GpuOp)]
