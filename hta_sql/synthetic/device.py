"""Simulate the GPU: streams that run queued work, and the whole job."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from hta_sql.synthetic.host import Host
from hta_sql.synthetic.program import training_step
from hta_sql.synthetic.records import COMPUTE_STREAM, GpuOp, StepTrace, StreamWait
from hta_sql.synthetic.spec import JobSpec
from hta_sql.synthetic.workload import OPERATORS

_FIRST_EARLY_CORRELATION = 40_000


class Device:
    """Streams of one GPU. Work on one stream runs in order and never overlaps."""

    def __init__(self, spec: JobSpec, rank: int) -> None:
        self._random = random.Random(f"device {spec.seed} {rank}")  # noqa: S311 - jitter, not secrets
        self._free: defaultdict[int, int] = defaultdict(int)
        self._barrier: defaultdict[int, int] = defaultdict(int)

    def run_to_collective(self, queue: Iterator[GpuOp | StreamWait]) -> GpuOp | None:
        """Run work in launch order up to the next collective; start and return that collective."""
        for entry in queue:
            if isinstance(entry, StreamWait):
                awaited = self._free[entry.awaited]
                self._barrier[entry.stream] = max(self._barrier[entry.stream], awaited)
                continue
            self._start(entry)
            if entry.collective is not None:
                return entry
            self.finish(entry, entry.ts + entry.work_ns)
        return None

    def finish(self, op: GpuOp, end: int) -> None:
        """Finish an operation and free its stream."""
        op.dur = end - op.ts
        self._free[op.stream] = end

    def drained(self) -> int:
        """Return the time at which the compute stream has finished all queued work."""
        return self._free[COMPUTE_STREAM]

    def _start(self, op: GpuOp) -> None:
        pause = 750 + self._random.getrandbits(9)
        op.ts = max(
            op.ready_ns, self._free[op.stream] + pause, self._barrier[op.stream] + 2 * pause
        )


def run_queues(devices: list[Device], steps: list[StepTrace]) -> None:
    """Run one step on all GPUs.

    A collective ends on all GPUs simultaneously, after the last arrival.
    """
    queues = [iter(step.queue) for step in steps]
    while True:
        arrived = [
            device.run_to_collective(queue) for device, queue in zip(devices, queues, strict=True)
        ]
        together = [op for op in arrived if op is not None]
        if not together:
            return
        collective = together[0].collective
        transfer = 0 if collective is None else collective.transfer_ns
        end = max(op.ts for op in together) + transfer
        for device, op in zip(devices, together, strict=True):
            device.finish(op, end)


def simulate(spec: JobSpec) -> Iterator[list[StepTrace]]:
    """Yield each step as one trace per rank, so that only one step is in memory."""
    hosts = [Host(spec, rank) for rank in range(spec.ranks)]
    devices = [Device(spec, rank) for rank in range(spec.ranks)]
    for host in hosts:
        host.trace.queue.extend(_early_kernels(spec))
    roots = [host.enter_python("train.py(131): <module>") for host in hosts]
    for number in range(spec.first_step, spec.first_step + spec.steps):
        programs = [training_step(host, number) for host in hosts]
        for program in programs:
            next(program)
        run_queues(devices, [host.trace for host in hosts])
        for program, device in zip(programs, devices, strict=True):
            with suppress(StopIteration):
                program.send(device.drained())
        if spec.python_stacks and number == spec.first_step + spec.steps - 1:
            for host, root in zip(hosts, roots, strict=True):
                host.leave_python(root)
                host.trace.python.append(root)
        yield [host.take(number + 1) for host in hosts]


def _early_kernels(spec: JobSpec) -> Iterator[GpuOp]:
    """Yield kernels queued before the trace began, which have no call and no operator."""
    for index in range(spec.early_kernels):
        kernel = OPERATORS[index % len(OPERATORS)].forward_kernel
        op = GpuOp(
            "kernel", "computation", kernel.name, COMPUTE_STREAM, kernel.ns,
            _FIRST_EARLY_CORRELATION + index, 0, None, (), kernel.args,
        )  # fmt: skip
        op.ready_ns = spec.start_ns + 2_000
        yield op
