"""Specification of a simulated job: ranks, parallelism, model, noise, faults and capture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

US = 1_000
MS = 1_000_000

Framework = Literal["ddp", "fsdp", "tensor", "pipeline", "experts", "serving"]
Noise = Literal["gauss", "heavy tails", "bursts", "autocorrelated", "host jitter"]
FaultKind = Literal[
    "slower clocks",
    "slower kernel",
    "throttling",
    "more kernels",
    "hot expert",
    "host-bound",
    "host pauses",
    "data loading",
    "checkpoint",
    "copies",
]


@dataclass(frozen=True)
class Fault:
    """Additional work of some ranks.

    Attributes:
        kind: Kind of the fault.
        ranks: Ranks with the fault.
        amount: Factor on durations, additional host time [ns], or additional kernels in each layer.
        steps: Steps in which the ranks have the fault; None means all steps.
    """

    kind: FaultKind
    ranks: tuple[int, ...]
    amount: float
    steps: tuple[int, ...] | None = None

    def hits(self, rank: int, step: int) -> bool:
        """Return whether a rank has the fault in a step."""
        return rank in self.ranks and (self.steps is None or step in self.steps)


@dataclass(frozen=True)
class SlowLink:
    """A link on which transfers take longer.

    Attributes:
        factor: Factor on the duration of the transfers.
        pair: Two ranks with a slow link between them.
        rank: Rank whose links to all other ranks are slow.
        host: Host whose links to all other hosts are slow.
    """

    factor: float
    pair: tuple[int, int] | None = None
    rank: int | None = None
    host: int | None = None


@dataclass(frozen=True)
class Job:
    """A job with known faults.

    Attributes:
        framework: Framework, which determines how the model is divided and what overlaps.
        steps: Number of captured steps.
        warm_steps: Number of steps before the capture.
        layers: Number of layers in a stage.
        micro_batches: Number of forward passes in a step.
        accumulation: Number of forward and backward passes before gradients are reduced.
        layer_ns: Compute time of a layer in the forward pass.
        data_ns: Transfer time of the gradients or of a layer's parameters.
        tensor_ns: Transfer time of activations between ranks that share a layer.
        launch_ns: Host time for each kernel.
        length_spread: Relative standard deviation of the sequence lengths.
        rank_spread: Relative standard deviation of the permanent differences between ranks.
        writes_waits: Whether traces have the calls in which the host waits for the device.
        lost_metadata: Process groups whose kernels have no metadata; "all" means every group.
        drift: Rate at which the clock of each host runs ahead [ns per ns].
        clock_offset_ns: Clock offset of each host.
        missing: Ranks without a trace.
    """

    framework: Framework = "ddp"
    ranks: int = 8
    tensor: int = 1
    stages: int = 1
    experts: int = 1
    ranks_per_host: int = 8
    steps: int = 6
    warm_steps: int = 0
    layers: int = 4
    micro_batches: int = 1
    accumulation: int = 1
    layer_ns: int = 400 * US
    data_ns: int = 300 * US
    tensor_ns: int = 40 * US
    pipeline_ns: int = 40 * US
    launch_ns: int = 6 * US
    loading_ns: int = 200 * US
    syncs_every_step: bool = True
    writes_steps: bool = True
    writes_waits: bool = True
    noise: Noise = "gauss"
    noise_share: float = 0.02
    rank_spread: float = 0.003
    length_spread: float = 0.0
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    links: tuple[SlowLink, ...] = ()
    lost_metadata: tuple[str, ...] = ()
    drift: tuple[float, ...] = ()
    clock_offset_ns: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()

    def stage(self, rank: int) -> int:
        """Return a rank's pipeline stage."""
        return rank * self.stages // self.ranks

    def host(self, rank: int) -> int:
        """Return the number of a rank's host."""
        return rank // self.ranks_per_host

    def group(self, kind: str, rank: int) -> tuple[int, ...]:
        """Return the ranks in a rank's process group of a given kind: tp, dp, ep or world."""
        if kind == "world":
            return tuple(range(self.ranks))
        if kind in {"tp", "ep"}:
            size = self.tensor if kind == "tp" else self.experts
            first = rank - rank % size
            return tuple(range(first, first + size))
        mine = (rank % self.tensor, self.stage(rank))
        return tuple(r for r in range(self.ranks) if (r % self.tensor, self.stage(r)) == mine)

    def neighbor(self, rank: int, direction: int) -> int | None:
        """Return a rank's peer in the next (+1) or previous (-1) stage, or None."""
        stage = self.stage(rank) + direction
        return rank + direction * self.ranks // self.stages if 0 <= stage < self.stages else None

    def link_factor(self, group: tuple[int, ...]) -> float:
        """Return the factor of the slowest link that the transfers of a group cross."""
        found = [1.0]
        for link in self.links:
            hosts = {self.host(r) for r in group}
            crosses = (
                (link.pair is not None and set(link.pair) <= set(group))
                or (link.rank is not None and link.rank in group)
                or (link.host is not None and link.host in hosts and len(hosts) > 1)
            )
            found += [link.factor] if crosses else []
        return max(found)

    def healthy(self) -> Job:
        """Return the job without its faults, but with the same noise."""
        return replace(self, faults=())

    def at_peer_speed(self) -> Job:
        """Return the job without its slow links."""
        return replace(self, links=())
