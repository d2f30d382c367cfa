"""Simulate the CPU side of a rank: a clock, two threads, and a record of their events."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from hta_sql.synthetic.records import (
    CALLS,
    COMPUTE_STREAM,
    LAUNCHES,
    Collective,
    FlowPoint,
    GpuClass,
    GpuKind,
    GpuOp,
    HostEvent,
    MemoryInstant,
    PythonFrame,
    RuntimeCall,
    StepTrace,
    StreamWait,
    SyncEvent,
)
from hta_sql.synthetic.spec import JobSpec
from hta_sql.synthetic.workload import Kernel

_SEGMENT = 2 * 1024 * 1024


class Host:
    """Recorder of one rank, step by step; `now` is the time of the running thread."""

    def __init__(self, spec: JobSpec, rank: int) -> None:
        self.spec = spec
        self.rank = rank
        self.now = spec.start_ns
        self.random = random.Random(f"host {spec.seed} {rank}")  # noqa: S311 - jitter, not secrets
        self.main_thread = spec.pid_of(rank)
        self.autograd_thread = self.main_thread + 80
        self.thread = self.main_thread
        self.slowness = spec.slow_kernels.get(rank, 1)
        self.trace = StepTrace(spec.first_step)
        self.sequence = 1000
        self.flow = 0
        self.group_seq: defaultdict[int, int] = defaultdict(int)
        self._external = 1024
        self._operator = 0
        self._correlation = 45_000 + spec.early_kernels
        self._launches = 0
        self._scopes: tuple[HostEvent, ...] = ()
        self._python_id = 0
        self._python_stack: list[int] = []
        self._modules: dict[str, int] = {}
        self._memory = Allocator()

    def take(self, number: int) -> StepTrace:
        """Return the recorded step and start step `number`."""
        taken, self.trace = self.trace, StepTrace(number)
        return taken

    def jitter(self, ns: int) -> int:
        """Return `ns` plus up to 25 % of random jitter."""
        return ns + ns * self.random.getrandbits(8) // 1024

    def tick(self, ns: int) -> None:
        """Advance the running thread by about `ns`."""
        self.now += self.jitter(ns)

    @contextmanager
    def operator(self, name: str, args: str = "", category: str = "cpu_op") -> Iterator[HostEvent]:
        """Record an operator that encloses the events in the block."""
        self._external += 1
        event = HostEvent(category, name, self.thread, self.now, 0, self._external, args)
        self.trace.host.append(event)
        # GPU work belongs to the enclosing operator, never to an annotation.
        outer = self._operator
        if category == "cpu_op":
            self._operator = event.external_id
        self.tick(1_400)
        yield event
        self.tick(900)
        event.dur = self.now - event.ts
        self._operator = outer

    @contextmanager
    def annotation(self, name: str) -> Iterator[HostEvent]:
        """Record a user annotation; GPU work launched inside it carries its name."""
        outer = self._scopes
        with self.operator(name, category="user_annotation") as event:
            self._scopes = (*outer, event)
            yield event
        self._scopes = outer

    @contextmanager
    def on_autograd_thread(self) -> Iterator[None]:
        """Switch to the autograd thread while the main thread waits in `backward()`."""
        outer, self._scopes = self._scopes, ()
        self.tick(18_000)
        self.thread = self.autograd_thread
        yield
        self.thread = self.main_thread
        self.tick(12_000)
        self._scopes = outer

    @contextmanager
    def python(self, name: str, module: str | None = None) -> Iterator[None]:
        """Record a Python frame if the job has frames; `module` is an nn.Module instance."""
        if not self.spec.python_stacks:
            yield
            return
        frame = self.enter_python(name, module)
        self.trace.python.append(frame)
        self.tick(1_100)
        yield
        self.tick(600)
        self.leave_python(frame)

    def enter_python(self, name: str, module: str | None = None) -> PythonFrame:
        """Return an open frame that the caller must close and record."""
        self._python_id += 1
        parent = self._python_stack[-1] if self._python_stack else None
        module_id = None if module is None else self._modules.setdefault(module, len(self._modules))
        self._python_stack.append(self._python_id)
        return PythonFrame(name, self.thread, self.now, 0, self._python_id, parent, module_id)

    def leave_python(self, frame: PythonFrame) -> None:
        """Close the innermost frame."""
        frame.dur = self.now - frame.ts
        self._python_stack.pop()

    def call(self, name: str) -> RuntimeCall:
        """Record a call to the CUDA runtime or driver, which may be missing from the trace."""
        category, cbid, ns = CALLS[name]
        launches = name in LAUNCHES
        self._correlation += 1
        ts = self.now
        self.tick(ns)
        call = RuntimeCall(
            category, name, cbid, self.thread, ts, self.now - ts,
            self._correlation, self._operator, launches,
        )  # fmt: skip
        if launches and self.spec.lost_launch_every:
            self._launches += 1
            call.recorded = self._launches % self.spec.lost_launch_every != 0
        self.trace.calls.append(call)
        return call

    def queue(
        self,
        call: RuntimeCall,
        kind: GpuKind,
        name: str,
        work_ns: int,
        stream: int = COMPUTE_STREAM,
    ) -> GpuOp:
        """Queue GPU work on a stream; it can start shortly after its launch call began."""
        group: GpuClass = "computation" if kind == "kernel" else "memory"
        work_ns = self.jitter(work_ns)
        slowness = self._slowness_of(name) if group == "computation" else 1
        if slowness != 1:
            work_ns = max(1, round(work_ns * slowness))
        op = GpuOp(
            kind, group, name, stream, work_ns,
            call.correlation, call.external_id, call, self._scopes,
        )  # fmt: skip
        op.ready_ns = call.ts + self.jitter(4_600)
        self.trace.queue.append(op)
        return op

    def _slowness_of(self, name: str) -> float:
        """Return the duration factor of a computation kernel in this step."""
        factors = self.spec.kernel_factors
        of_kernel = next((factor for part, factor in factors.items() if part in name), 1)
        return self.slowness * of_kernel * self.spec.slow_steps.get(self.trace.number, 1)

    def kernel(self, kernel: Kernel) -> None:
        """Launch a computation kernel."""
        driver = kernel.matrix and self.spec.driver_launches
        call = self.call("cuLaunchKernelEx" if driver else "cudaLaunchKernel")
        self.queue(call, "kernel", kernel.name, kernel.ns).args = kernel.args

    def collective(self, kernel: Kernel, args: str, stream: int, collective: Collective) -> None:
        """Launch this rank's kernel of a collective."""
        modern = self.spec.nccl_names == "modern"
        call = self.call("cuLaunchKernelEx" if modern else "cudaLaunchKernelExC")
        op = self.queue(call, "kernel", kernel.name, 0, stream)
        op.group = "communication"
        op.args = kernel.args + args
        op.collective = collective

    def copy(self, name: str, size: int, bytes_per_ns: int, stream: int) -> None:
        """Launch a memcpy."""
        call = self.call("cudaMemcpyAsync")
        work = 900 + size // bytes_per_ns
        self.queue(call, "gpu_memcpy", name, work, stream).bytes = size

    def memset(self, size: int) -> None:
        """Launch a memset."""
        call = self.call("cudaMemsetAsync")
        op = self.queue(call, "gpu_memset", "Memset (Device)", 800 + size // 2_000)
        op.bytes = size

    def wait(self, stream: int, awaited: int) -> None:
        """Make `stream` wait for all work queued on `awaited` so far."""
        record = self.call("cudaEventRecord")
        call = self.call("cudaStreamWaitEvent")
        self.trace.queue.append(StreamWait(stream, awaited))
        if self.spec.sync_events:
            args = (
                f'"wait_on_stream": {awaited},      '
                f'"wait_on_cuda_event_record_corr_id": {record.correlation},      '
                f'"wait_on_cuda_event_id": {awaited},      '
            )
            self.sync("Stream Wait Event", stream, call, args)

    def sync(self, name: str, stream: int, call: RuntimeCall, args: str = "") -> None:
        """Record a device-side synchronization if the job has such events."""
        if self.spec.sync_events:
            event = SyncEvent(name, stream, call.ts + 300, call.dur - 400, call.correlation, args)
            self.trace.syncs.append(event)

    def arrow(self, phase: str, flow: int) -> None:
        """Record one end of the arrow from a forward operator to its backward node."""
        self.trace.flows.append(FlowPoint(phase, flow, self.thread, self.now - 700))

    def allocate(self, size: int) -> int:
        """Allocate GPU memory and return its address."""
        address = self._memory.allocate(size)
        self._remember(address, size)
        return address

    def release(self, address: int, size: int) -> None:
        """Release memory that `allocate` returned."""
        self._memory.release(address, size)
        self._remember(address, -size)

    def _remember(self, address: int, change: int) -> None:
        if self.spec.memory_events:
            self.tick(400)
            totals = (self._memory.allocated, self._memory.reserved)
            instant = MemoryInstant(self.thread, self.now, address, change, *totals)
            self.trace.memory.append(instant)


class Allocator:
    """Caching allocator that assigns addresses and counts bytes, like torch's."""

    def __init__(self) -> None:
        self.allocated = 0
        self.reserved = 0
        self._next = 0x7F0000000000
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def allocate(self, size: int) -> int:
        """Return an address; released addresses are reused for equal sizes."""
        self.allocated += size
        # Memory is reserved in whole segments, which are never returned.
        self.reserved = max(self.reserved, -(-self.allocated // _SEGMENT) * _SEGMENT)
        if self._free[size]:
            return self._free[size].pop()
        self._next += size
        return self._next - size

    def release(self, address: int, size: int) -> None:
        """Release memory that `allocate` returned."""
        self.allocated -= size
        self._free[size].append(address)
