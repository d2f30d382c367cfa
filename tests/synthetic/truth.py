"""What is true of a job, as plain values.

All times are integer nanoseconds; `ts` and `arrival_ns` are what the rank's own file says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IdleCause = Literal["host_wait", "kernel_wait", "other"]


@dataclass(frozen=True)
class TimeBreakdown:
    """How one rank's GPU spent the time from its first operation to the end of its last."""

    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    non_compute_ns: int
    """Busy, but not with computation."""
    communication_ns: int
    overlapped_communication_ns: int
    exposed_communication_ns: int
    """Communication that no computation covers."""
    memory_ns: int
    exposed_memory_ns: int
    """Copies that neither computation nor communication covers."""
    class_sets: dict[str, int]
    """Time by the classes that ran together, e.g. `communication+computation`."""


@dataclass(frozen=True)
class IdleGaps:
    """The gaps of one stream that have one cause."""

    device: int
    stream: int
    cause: IdleCause
    count: int
    sum_ns: int


@dataclass(frozen=True)
class OpTotals:
    """Lengths of the GPU operations of one name."""

    kind: str
    name: str
    count: int
    sum_ns: int
    min_ns: int
    max_ns: int


@dataclass(frozen=True)
class LaunchTotals:
    """GPU operations with a launch call in the trace, one pair each, by the call's name."""

    call: str
    count: int
    cpu_dur_ns: int
    gpu_dur_ns: int
    delay_ns: int
    """From the end of the call to the start of the operation, where that is later."""


@dataclass(frozen=True)
class ScopeTruth:
    """One rank over all of its trace, or without the last profiler step."""

    time: TimeBreakdown
    idle_gaps: list[IdleGaps]
    ops: list[OpTotals]
    launches: list[LaunchTotals]


@dataclass(frozen=True)
class StepTruth:
    """One host profiler step of one rank."""

    number: int
    ts: int
    dur: int


@dataclass(frozen=True)
class CollectiveTruth:
    """One rank's part in one collective: its kernel lasts `wait_ns + transfer_ns`."""

    step: int
    index: int
    """Position among the collectives of the step."""
    seq: int
    """Position within the process group, from 1."""
    group: str
    stream: int
    rank: int
    arrival_ns: int
    wait_ns: int
    """Until the last rank had arrived, clocks corrected."""
    transfer_ns: int


@dataclass(frozen=True)
class RankTruth:
    """One rank."""

    rank: int
    device: int
    steps: list[StepTruth]
    all: ScopeTruth
    default: ScopeTruth
    """Without the last profiler step, as analyses leave it out by default."""


@dataclass(frozen=True)
class Truth:
    """A whole job."""

    ranks: list[RankTruth]
    collectives: list[CollectiveTruth]
    stragglers: dict[int, int]
    """What the job was told to delay, by rank; ranks without a delay are left out."""
    slow_kernels: dict[int, float]
