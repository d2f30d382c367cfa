"""The truth about a simulated job, as plain values.

All times are integer nanoseconds; `ts` and `arrival_ns` are on the clock of the rank's own file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IdleCause = Literal["host_wait", "kernel_wait", "other"]


@dataclass(frozen=True)
class TimeBreakdown:
    """Time of one rank's GPU from its first operation to the end of its last, by activity."""

    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    non_compute_ns: int
    """Busy time without computation."""
    communication_ns: int
    overlapped_communication_ns: int
    exposed_communication_ns: int
    """Communication that is not overlapped by computation."""
    memory_ns: int
    exposed_memory_ns: int
    """Copies that are overlapped neither by computation nor by communication."""
    class_sets: dict[str, int]
    """Time by the set of classes that ran at the same time, e.g. `communication+computation`."""


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
    """Durations of the GPU operations with one name."""

    kind: str
    name: str
    count: int
    sum_ns: int
    min_ns: int
    max_ns: int


@dataclass(frozen=True)
class LaunchTotals:
    """Totals of the GPU operations with a recorded launch call, by the name of the call."""

    call: str
    count: int
    cpu_dur_ns: int
    gpu_dur_ns: int
    delay_ns: int
    """Total time from the end of the call to the start of the operation, never negative."""


@dataclass(frozen=True)
class ScopeTruth:
    """The truth about a rank, for its whole trace or without the last profiler step."""

    time: TimeBreakdown
    idle_gaps: list[IdleGaps]
    ops: list[OpTotals]
    launches: list[LaunchTotals]


@dataclass(frozen=True)
class StepTruth:
    """A profiler step of a rank on the host."""

    number: int
    ts: int
    dur: int


@dataclass(frozen=True)
class CollectiveTruth:
    """One rank's part in one collective, whose kernel takes `wait_ns + transfer_ns`."""

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
    """Time until the last rank arrives, with corrected clocks."""
    transfer_ns: int


@dataclass(frozen=True)
class RankTruth:
    """The truth about one rank."""

    rank: int
    device: int
    steps: list[StepTruth]
    all: ScopeTruth
    default: ScopeTruth
    """Values without the last profiler step, which analyses exclude by default."""


@dataclass(frozen=True)
class Truth:
    """The truth about a whole job."""

    ranks: list[RankTruth]
    collectives: list[CollectiveTruth]
    stragglers: dict[int, int]
    """Planted delay by rank; ranks without a delay are not listed."""
    slow_kernels: dict[int, float]
