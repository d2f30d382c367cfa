"""Specification of a planted job: many ranks, one fault, and how its traces are captured."""

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
    """The deviation of a rank's clock from the true time."""

    offset_ns: int = 0
    drift: float = 0.0
    """Gain of the clock [ns per ns]."""

    def reads(self, true_ns: int) -> int:
        """Return the time that the clock shows."""
        return true_ns + self.offset_ns + round(self.drift * true_ns)


@dataclass(frozen=True)
class PlantedJob:
    """A job with known truth. Mappings are keyed by rank; ranks that are not in them are normal.

    Ranks of one tensor-parallel group are neighbors; a data-parallel group has one of each.
    """

    ranks: int = 4
    steps: int = 12
    layers: int = 2
    tp: int = 1
    """Ranks of a tensor-parallel group; 1 means no group."""
    stages: int = 1
    """Stages of a pipeline, which divide the ranks; activations go from one to the next."""
    micro_batches: int = 1
    """Forward passes of a step, each sent separately, followed by as many backward passes."""
    experts: int = 1
    """Ranks that share the experts of a layer; 1 means none. Tokens go there and back."""
    overlap: bool = False
    """Whether gradients are reduced during the backward pass."""
    syncs: bool = True
    """Whether the host waits for the device at the end of each step; otherwise it runs ahead as far as launches allow."""
    waits_in_calls: bool = False
    """Whether host and streams wait in recorded calls: at the end of a step, and at collectives."""
    noise: float = 0.01
    """Standard deviation of the duration of a kernel, as a share."""
    sequence_spread: float = 0.0
    """Standard deviation of the duration of all kernels of a step, as a share: sequence lengths differ between ranks."""
    pauses: float = 0.0
    """Probability that the host of a rank pauses in a step, for a mean of 2 ms."""
    pausing: Mapping[int, float] = field(default_factory=dict)
    """Rank ─▶ probability that its host pauses in a layer, for 1 to 2 ms."""
    gathers: bool = False
    """Whether parameters of a layer are gathered while the previous one computes."""
    scatter_ns: int = 200
    """Mean delay with which a rank leaves a collective after the others [ns]."""
    seed: int = 0

    # Causes of lateness.
    slower_clock: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of all its kernels."""
    throttled: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of all its kernels in the second half of the capture only."""
    slower_kernel: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of one kernel, attention."""
    more_kernels: Mapping[int, int] = field(default_factory=dict)
    """Number of additional matrix products in each layer."""
    bigger_batch: Mapping[int, float] = field(default_factory=dict)
    """Factor on grid and duration of its matrix products."""
    host_bound: Mapping[int, int] = field(default_factory=dict)
    """Additional host time for each operator [ns]."""
    loading: Mapping[int, int] = field(default_factory=dict)
    """Additional time to load data in each step [ns]."""
    saving: Mapping[int, int] = field(default_factory=dict)
    """Additional time to save a checkpoint in each step [ns]."""
    hot_expert: Mapping[int, float] = field(default_factory=dict)
    """Factor on grid and duration of the matrix product of its expert."""
    late_steps: tuple[int, ...] = ()
    """Steps in which the causes above apply; empty means all steps."""
    slow_link: Mapping[int, float] = field(default_factory=dict)
    """Number of a data-parallel group ─▶ factor on its transfers."""

    slow_pair: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Sender and receiver of a pipeline ─▶ factor on its transfers."""

    slow_host: Mapping[int, float] = field(default_factory=dict)
    """Number of a host ─▶ factor on its transfers from and to other hosts."""

    # Ranks out of step: rank ─▶ the step in which.
    extra_collective: Mapping[int, int] = field(default_factory=dict)
    """Whether it reduces an extra element, so each later collective meets the next one of the others."""
    other_type: Mapping[int, int] = field(default_factory=dict)
    """Whether it reduces halves while the others reduce floats."""

    # How it was captured.
    clocks: Mapping[int, Clock] = field(default_factory=dict)
    hosts: int = 1
    """Number of hosts that share the ranks evenly, with neighbors on one host."""
    names_hosts: bool = True
    tick_ns: int = 1
    """Resolution of the recorded times [ns]; times are rounded down."""
    starts_late: Mapping[int, int] = field(default_factory=dict)
    """Delay of the start of its capture [ns]."""
    ends_early: Mapping[int, int] = field(default_factory=dict)
    """Time by which its capture ends early [ns]."""
    lost: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Numbers of its collective kernels that are not in the trace."""
    metadata: Metadata = "full"
    lost_metadata: tuple[str, ...] = ()
    """Kinds of groups (tp, dp, …) whose collectives have no metadata."""
    seq: SeqStyle = "right"
    cut_lists: bool = False
    """Whether ranks of groups are written as "[0, 1, ...]"."""
    cut_splits: bool = False
    """Whether split sizes of an all-to-all are written as "[3, 5, ...]"."""
    writes_steps: bool = True

    def host_of(self, rank: int) -> str:
        """Return the name of the host of a rank."""
        return f"node-{self.host_number(rank)}"

    def host_number(self, rank: int) -> int:
        """Return the number of the host of a rank."""
        return rank * self.hosts // self.ranks

    def tp_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that split the layers of a rank."""
        first = rank - rank % self.tp
        return tuple(range(first, first + self.tp))

    def ep_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that share the experts of a layer."""
        first = rank - rank % self.experts
        return tuple(range(first, first + self.experts))

    def tokens(self, number: int, source: int, target: int) -> int:
        """Return the number of tokens that a rank sends to the experts of another; the first rank has the popular ones."""
        popular = 40 if target % self.experts == 0 else 10
        return popular + (7 * number + 3 * source + 5 * target) % 11

    def stage_of(self, rank: int) -> int:
        """Return the stage of the pipeline that the rank belongs to."""
        return rank * self.stages // self.ranks

    def dp_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks with the same part of the model."""
        same = (r for r in range(self.ranks) if r % self.tp == rank % self.tp)
        return tuple(r for r in same if self.stage_of(r) == self.stage_of(rank))

    @property
    def late(self) -> dict[int, str]:
        """Return the slow ranks with their causes."""
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
