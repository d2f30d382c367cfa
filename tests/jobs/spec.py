"""Specification of a planted job: its ranks, its fault, and how its traces are captured."""

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
    """Deviation of a rank's clock from true time."""

    offset_ns: int = 0
    drift: float = 0.0
    """Rate at which the clock runs ahead of true time [ns per ns]."""

    def reads(self, true_ns: int) -> int:
        """Return the time that the clock shows."""
        return true_ns + self.offset_ns + round(self.drift * true_ns)


@dataclass(frozen=True)
class PlantedJob:
    """A job with a known fault. Mappings are keyed by rank; ranks without an entry are normal.

    The ranks of a tensor-parallel group are neighbors. A data-parallel group has one rank from each
    tensor-parallel group.
    """

    ranks: int = 4
    steps: int = 12
    layers: int = 2
    tp: int = 1
    """Number of ranks in a tensor-parallel group; 1 means no tensor parallelism."""
    stages: int = 1
    """Number of pipeline stages; the ranks are divided evenly among them."""
    micro_batches: int = 1
    """Number of forward passes in a step, which are followed by as many backward passes."""
    experts: int = 1
    """Number of ranks that share the experts of a layer; 1 means no experts."""
    overlap: bool = False
    """Whether gradients are reduced during the backward pass."""
    syncs: bool = True
    """Whether the host waits for the device after each step; otherwise it runs ahead."""
    waits_in_calls: bool = False
    """Whether the calls by which hosts and streams wait are recorded."""
    noise: float = 0.01
    """Standard deviation of kernel durations, relative to their mean."""
    sequence_spread: float = 0.0
    """Relative standard deviation of the duration of all kernels in a step.

    This models sequence lengths that differ between ranks.
    """
    pauses: float = 0.0
    """Probability that a rank's host pauses in a step, for 2 ms on average."""
    pausing: Mapping[int, float] = field(default_factory=dict)
    """Rank ─▶ probability that its host pauses for 1 to 2 ms in a layer."""
    gathers: bool = False
    """Whether the parameters of a layer are gathered while the previous layer is computed."""
    scatter_ns: int = 200
    """Mean delay of a rank when it leaves a collective [ns]."""
    seed: int = 0

    # Faults that make a rank slow.
    slower_clock: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of all kernels."""
    throttled: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of all kernels in the second half of the job."""
    slower_kernel: Mapping[int, float] = field(default_factory=dict)
    """Factor on the duration of the attention kernel."""
    more_kernels: Mapping[int, int] = field(default_factory=dict)
    """Number of additional matrix products in each layer."""
    bigger_batch: Mapping[int, float] = field(default_factory=dict)
    """Factor on the grid and the duration of matrix products."""
    host_bound: Mapping[int, int] = field(default_factory=dict)
    """Additional host time for each operator [ns]."""
    loading: Mapping[int, int] = field(default_factory=dict)
    """Additional data loading time in each step [ns]."""
    saving: Mapping[int, int] = field(default_factory=dict)
    """Time for saving a checkpoint in each step [ns]."""
    hot_expert: Mapping[int, float] = field(default_factory=dict)
    """Factor on the grid and the duration of the expert's matrix product."""
    late_steps: tuple[int, ...] = ()
    """Steps in which the faults above apply; empty means all steps."""
    slow_link: Mapping[int, float] = field(default_factory=dict)
    """First rank of a data-parallel group ─▶ factor on the duration of its transfers."""

    slow_pair: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Sender and receiver in a pipeline ─▶ factor on the duration of their transfers."""

    slow_host: Mapping[int, float] = field(default_factory=dict)
    """Host number ─▶ factor on the duration of transfers from and to other hosts."""

    # Faults that make a rank run a different collective: rank ─▶ step.
    extra_collective: Mapping[int, int] = field(default_factory=dict)
    """Step in which the rank runs an additional reduction of one element.

    Each later collective of this rank is therefore matched with a wrong collective of the other
    ranks.
    """
    other_type: Mapping[int, int] = field(default_factory=dict)
    """Step in which the rank reduces BFloat16 values while the other ranks reduce floats."""

    # Properties of the capture.
    clocks: Mapping[int, Clock] = field(default_factory=dict)
    hosts: int = 1
    """Number of hosts; the ranks are divided evenly among them, in order."""
    names_hosts: bool = True
    tick_ns: int = 1
    """Resolution of recorded times, which are rounded down [ns]."""
    starts_late: Mapping[int, int] = field(default_factory=dict)
    """Delay at the start of the rank's capture [ns]."""
    ends_early: Mapping[int, int] = field(default_factory=dict)
    """Time by which the rank's capture ends early [ns]."""
    lost: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Indices of the rank's collective kernels that are missing from its trace."""
    metadata: Metadata = "full"
    lost_metadata: tuple[str, ...] = ()
    """Group kinds (tp, dp, …) whose collectives have no metadata."""
    seq: SeqStyle = "right"
    cut_lists: bool = False
    """Whether the rank lists of groups are truncated, as in "[0, 1, ...]"."""
    cut_splits: bool = False
    """Whether the split sizes of an all-to-all are truncated, as in "[3, 5, ...]"."""
    writes_steps: bool = True

    def host_of(self, rank: int) -> str:
        """Return the name of a rank's host."""
        return f"node-{self.host_number(rank)}"

    def host_number(self, rank: int) -> int:
        """Return the number of a rank's host."""
        return rank * self.hosts // self.ranks

    def tp_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of a rank's tensor-parallel group."""
        first = rank - rank % self.tp
        return tuple(range(first, first + self.tp))

    def ep_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of a rank's expert-parallel group."""
        first = rank - rank % self.experts
        return tuple(range(first, first + self.experts))

    def tokens(self, number: int, source: int, target: int) -> int:
        """Return how many tokens one rank sends to another rank's experts.

        The first rank of each group has the popular experts.
        """
        popular = 40 if target % self.experts == 0 else 10
        return popular + (7 * number + 3 * source + 5 * target) % 11

    def stage_of(self, rank: int) -> int:
        """Return the index of a rank's pipeline stage."""
        return rank * self.stages // self.ranks

    def dp_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of a rank's data-parallel group, which share its part of the model."""
        same = (r for r in range(self.ranks) if r % self.tp == rank % self.tp)
        return tuple(r for r in same if self.stage_of(r) == self.stage_of(rank))

    @property
    def late(self) -> dict[int, str]:
        """Return the slow ranks and their expected causes."""
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
