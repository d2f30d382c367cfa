"""What a planted job looks like: many ranks, one fault, and how its traces were captured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MS = 1_000_000
US = 1_000

Metadata = Literal["full", "without seq", "operator", "none"]
SeqStyle = Literal["right", "doubled", "doubled on one rank", "off on one rank"]


@dataclass(frozen=True)
class Clock:
    """How a rank's clock differs from the true time."""

    offset_ns: int = 0
    drift: float = 0.0
    """Nanoseconds that it gains in each nanosecond."""

    def reads(self, true_ns: int) -> int:
        """What it shows."""
        return true_ns + self.offset_ns + round(self.drift * true_ns)


@dataclass(frozen=True)
class PlantedJob:
    """A job whose truth is known. Mappings are keyed by rank; the others are as usual.

    Ranks of one tensor-parallel group are neighbors; a data-parallel group has one of each.
    """

    ranks: int = 4
    steps: int = 12
    layers: int = 2
    tp: int = 1
    """Ranks of a tensor-parallel group; 1: none."""
    stages: int = 1
    """Stages of a pipeline, which halve the ranks: activations go from one to the next."""
    micro_batches: int = 1
    """Forward passes of a step, each sent on by itself; then as many backward passes."""
    experts: int = 1
    """Ranks among which the experts of a layer are spread; 1: none. Tokens go there and back."""
    overlap: bool = False
    """Gradients are reduced while the backward pass goes on."""
    syncs: bool = True
    """The host waits for the device at the end of each step; else it runs ahead, as far as its launches take it."""
    waits_in_calls: bool = False
    """Host and streams wait in calls, which the trace has: at the end of a step, around collectives."""
    noise: float = 0.01
    """Standard deviation of the length of a kernel, as a share."""
    sequence_spread: float = 0.0
    """Standard deviation of the length of all kernels of a step, as a share: ranks get other sequences."""
    pauses: float = 0.0
    """Probability that the host of a rank pauses in a step, for 2 ms on average."""
    pausing: Mapping[int, float] = field(default_factory=dict)
    """Rank ─▶ probability that its host pauses in a layer, for 1 to 2 ms."""
    gathers: bool = False
    """Parameters of a layer are gathered while the one before it computes."""
    scatter_ns: int = 200
    """Mean of how much later than the others a rank leaves a collective."""
    seed: int = 0

    # Causes of lateness.
    slower_clock: Mapping[int, float] = field(default_factory=dict)
    """Factor on the length of all its kernels."""
    throttled: Mapping[int, float] = field(default_factory=dict)
    """The same, in the second half of the capture only."""
    slower_kernel: Mapping[int, float] = field(default_factory=dict)
    """Factor on the length of one kernel, attention."""
    more_kernels: Mapping[int, int] = field(default_factory=dict)
    """Matrix products more in each layer."""
    bigger_batch: Mapping[int, float] = field(default_factory=dict)
    """Factor on grid and length of its matrix products."""
    host_bound: Mapping[int, int] = field(default_factory=dict)
    """Time more that the host needs for each operator [ns]."""
    loading: Mapping[int, int] = field(default_factory=dict)
    """Time more that it loads data in each step [ns]."""
    saving: Mapping[int, int] = field(default_factory=dict)
    """Time more that it saves a checkpoint in each step [ns]."""
    hot_expert: Mapping[int, float] = field(default_factory=dict)
    """Factor on grid and length of the matrix product of its expert."""
    late_steps: tuple[int, ...] = ()
    """Steps in which the causes above apply; empty: all steps."""
    slow_link: Mapping[int, float] = field(default_factory=dict)
    """Number of a data-parallel group ─▶ factor on its transfers."""

    slow_pair: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Sender and receiver of a pipeline ─▶ factor on its transfers."""

    slow_host: Mapping[int, float] = field(default_factory=dict)
    """Number of a host ─▶ factor on its transfers from and to other hosts."""

    # Ranks out of step: rank ─▶ the step in which.
    extra_collective: Mapping[int, int] = field(default_factory=dict)
    """It reduces one element that the others do not: each later one meets the next of theirs."""
    other_type: Mapping[int, int] = field(default_factory=dict)
    """It reduces halves where the others reduce floats."""

    # How it was captured.
    clocks: Mapping[int, Clock] = field(default_factory=dict)
    hosts: int = 1
    """Hosts that share the ranks evenly, neighbors together."""
    names_hosts: bool = True
    tick_ns: int = 1
    """All times are told in whole multiples of it, the last one before."""
    starts_late: Mapping[int, int] = field(default_factory=dict)
    """Its capture begins so much later [ns]."""
    ends_early: Mapping[int, int] = field(default_factory=dict)
    """Its capture ends so much earlier [ns]."""
    lost: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Numbers of its collective kernels that are not in the trace."""
    metadata: Metadata = "full"
    lost_metadata: tuple[str, ...] = ()
    """Kinds of groups (tp, dp, …) whose collectives have none."""
    seq: SeqStyle = "right"
    cut_lists: bool = False
    """Ranks of groups are written as "[0, 1, ...]"."""
    cut_splits: bool = False
    """Split sizes of an all-to-all are written as "[3, 5, ...]"."""
    writes_steps: bool = True

    def host_of(self, rank: int) -> str:
        """Name of its host."""
        return f"node-{self.host_number(rank)}"

    def host_number(self, rank: int) -> int:
        """Which of the hosts it runs on."""
        return rank * self.hosts // self.ranks

    def tp_group(self, rank: int) -> tuple[int, ...]:
        """Ranks that split its layers."""
        first = rank - rank % self.tp
        return tuple(range(first, first + self.tp))

    def ep_group(self, rank: int) -> tuple[int, ...]:
        """Ranks that have the experts of a layer between them."""
        first = rank - rank % self.experts
        return tuple(range(first, first + self.experts))

    def tokens(self, number: int, source: int, target: int) -> int:
        """How many tokens a rank sends to the experts of another: the first rank has the popular ones."""
        popular = 40 if target % self.experts == 0 else 10
        return popular + (7 * number + 3 * source + 5 * target) % 11

    def stage_of(self, rank: int) -> int:
        """Which part of the model it has."""
        return rank * self.stages // self.ranks

    def dp_group(self, rank: int) -> tuple[int, ...]:
        """Ranks that have the same part of the model."""
        same = (r for r in range(self.ranks) if r % self.tp == rank % self.tp)
        return tuple(r for r in same if self.stage_of(r) == self.stage_of(rank))

    @property
    def late(self) -> dict[int, str]:
        """Who is late, and why."""
        causes = {
            "slower_clock": "slower compute",
            "throttled": "throttling",
            "slower_kernel": "slower compute",
            "more_kernels": "more compute",
            "bigger_batch": "more compute",
            "host_bound": "host-bound",
            "loading": "data loading",
            "saving": "checkpoint",
            "hot_expert": "more compute",
            "pausing": "host-bound",
        }
        return {rank: cause for name, cause in causes.items() for rank in getattr(self, name)}
