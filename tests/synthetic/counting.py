"""Compute the truth about a simulated job by brute force over its GPU operations.

A spec always gives the same job, so the truth about its files comes from simulating the spec again.
The code is deliberately slow and simple, because it checks fast queries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from hta_sql.synthetic import Job, JobSpec
from hta_sql.synthetic.device import simulate
from hta_sql.synthetic.records import GpuOp, StepTrace
from tests.synthetic.truth import (
    CollectiveTruth,
    IdleCause,
    IdleGaps,
    LaunchTotals,
    OpTotals,
    RankTruth,
    ScopeTruth,
    StepTruth,
    TimeBreakdown,
    Truth,
)

KERNEL_WAIT_LIMIT_NS = 30_000
"""Length below which a gap between two queued kernels is a kernel wait [ns]."""


def truth_of(job: Job) -> Truth:
    """Simulate a job again, and return its truth."""
    recorder = _Recorder(job.spec)
    for traces in simulate(job.spec):
        recorder.add_step(traces)
    return recorder.truth()


class _Recorder:
    """Recorder of the GPU operations of a simulated job."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._ops: list[list[GpuOp]] = [[] for _ in range(spec.ranks)]
        self._steps: list[list[StepTruth]] = [[] for _ in range(spec.ranks)]

    def add_step(self, traces: Sequence[StepTrace]) -> None:
        """Record one step of every rank."""
        for rank, trace in enumerate(traces):
            shift = self._spec.shift_ns(rank)
            self._ops[rank].extend(trace.gpu_ops())
            self._steps[rank].append(StepTruth(trace.number, trace.ts + shift, trace.dur))

    def truth(self) -> Truth:
        """Return the truth about the recorded job."""
        return Truth(
            ranks=[self._rank(rank) for rank in range(self._spec.ranks)],
            collectives=self._collectives(),
            stragglers={r: ns for r, ns in sorted(self._spec.stragglers.items()) if ns},
            slow_kernels={r: f for r, f in sorted(self._spec.slow_kernels.items()) if f != 1},
        )

    def _rank(self, rank: int) -> RankTruth:
        ops, steps = self._ops[rank], self._steps[rank]
        device = self._spec.device_of(rank)
        cut = steps[-1].ts - self._spec.shift_ns(rank)
        kept = ops if len(steps) == 1 else [op for op in ops if _reference_ns(op) < cut]
        return RankTruth(rank, device, steps, _scope(ops, device), _scope(kept, device))

    def _collectives(self) -> list[CollectiveTruth]:
        arrivals: defaultdict[tuple[int, int], list[tuple[int, GpuOp]]] = defaultdict(list)
        for rank, ops in enumerate(self._ops):
            for op in ops:
                if op.collective is not None:
                    arrivals[op.collective.step, op.collective.index].append((rank, op))
        result = []
        for (step, index), parts in sorted(arrivals.items()):
            last = max(op.ts for _, op in parts)
            for rank, op in parts:
                plan = op.collective
                if plan is None:
                    continue
                arrival = op.ts + self._spec.shift_ns(rank)
                result.append(
                    CollectiveTruth(
                        step, index, plan.seq, str(plan.group), op.stream, rank, arrival,
                        wait_ns=last - op.ts, transfer_ns=op.ts + op.dur - last,
                    )
                )  # fmt: skip
        return result


def _reference_ns(op: GpuOp) -> int:
    """Return the launch time of an operation, or its start time if no launch was recorded."""
    return op.ts if op.launch is None else op.launch.ts


def _scope(ops: Sequence[GpuOp], device: int) -> ScopeTruth:
    return ScopeTruth(
        time=_time_breakdown(ops),
        idle_gaps=_idle_gaps(ops, device),
        ops=_op_totals(ops),
        launches=_launch_totals(ops),
    )


def _time_breakdown(ops: Sequence[GpuOp]) -> TimeBreakdown:
    sets = _time_by_classes(ops)

    def total(wanted: Callable[[frozenset[str]], bool]) -> int:
        return sum(ns for classes, ns in sets.items() if wanted(classes))

    span = max((op.ts + op.dur for op in ops), default=0) - min((op.ts for op in ops), default=0)
    busy = total(lambda _: True)
    compute = total(lambda classes: "computation" in classes)
    communication = total(lambda classes: "communication" in classes)
    overlapped = total(lambda classes: {"computation", "communication"} <= classes)
    return TimeBreakdown(
        span_ns=span,
        busy_ns=busy,
        idle_ns=span - busy,
        compute_ns=compute,
        non_compute_ns=busy - compute,
        communication_ns=communication,
        overlapped_communication_ns=overlapped,
        exposed_communication_ns=communication - overlapped,
        memory_ns=total(lambda classes: "memory" in classes),
        exposed_memory_ns=total(lambda classes: classes == {"memory"}),
        class_sets={
            "+".join(sorted(classes)): ns for classes, ns in sorted(sets.items(), key=_key)
        },
    )


def _key(item: tuple[frozenset[str], int]) -> list[str]:
    return sorted(item[0])


def _time_by_classes(ops: Iterable[GpuOp]) -> Counter[frozenset[str]]:
    """Sum the time between all boundaries by the set of classes that run at the same time."""
    boundaries = sorted(
        boundary
        for op in ops
        for boundary in ((op.ts, 1, op.group), (op.ts + op.dur, -1, op.group))
    )
    running: Counter[str] = Counter()
    sets: Counter[frozenset[str]] = Counter()
    previous = 0
    for at, change, group in boundaries:
        classes = frozenset(name for name, count in running.items() if count > 0)
        if classes and at > previous:
            sets[classes] += at - previous
        running[group] += change
        previous = at
    return sets


def _idle_gaps(ops: Iterable[GpuOp], device: int) -> list[IdleGaps]:
    streams: defaultdict[int, list[GpuOp]] = defaultdict(list)
    for op in ops:
        streams[op.stream].append(op)
    gaps: defaultdict[tuple[int, IdleCause], list[int]] = defaultdict(list)
    for stream, members in streams.items():
        members.sort(key=lambda op: op.ts)
        end = members[0].ts + members[0].dur
        for op in members[1:]:
            if op.ts > end:
                gaps[stream, _idle_cause(op, end)].append(op.ts - end)
            end = max(end, op.ts + op.dur)
    return [
        IdleGaps(device, stream, cause, len(lengths), sum(lengths))
        for (stream, cause), lengths in sorted(gaps.items())
    ]


def _idle_cause(op: GpuOp, free_since: int) -> IdleCause:
    """Return the cause of a gap: a late launch, the pause between kernels, or something else."""
    if op.launch is not None and op.launch.ts > free_since:
        return "host_wait"
    return "kernel_wait" if op.ts - free_since < KERNEL_WAIT_LIMIT_NS else "other"


def _op_totals(ops: Iterable[GpuOp]) -> list[OpTotals]:
    lengths: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for op in ops:
        lengths[op.kind, op.name].append(op.dur)
    return [
        OpTotals(kind, name, len(durs), sum(durs), min(durs), max(durs))
        for (kind, name), durs in sorted(lengths.items())
    ]


def _launch_totals(ops: Iterable[GpuOp]) -> list[LaunchTotals]:
    pairs: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for op in ops:
        call = op.launch
        if call is not None:
            delay = max(0, op.ts - (call.ts + call.dur))
            pairs[call.name].append((call.dur, op.dur, delay))
    return [
        LaunchTotals(name, len(rows), *(sum(column) for column in zip(*rows, strict=True)))
        for name, rows in sorted(pairs.items())
    ]
