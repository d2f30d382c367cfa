"""Specification of a simulated job: ranks, parallelism, model, noise, faults, and capture."""

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
]


@dataclass(frozen=True)
class Fault:
    """Additional work of some ranks compared with their peers.

    Attributes:
        kind: Kind of the fault.
        ranks: Ranks that have it.
        amount: Factor on durations; for the host, nanoseconds; for kernels, how many more a layer.
        steps: Steps in which they have it; None for all.
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
    """Transfers that cross a link take longer.

    Attributes:
        factor: Factor on the duration of the transfers.
        pair: Two ranks whose link is slow.
        rank: Rank that is slow to everybody.
        host: Host that is slow to every other host.
    """

    factor: float
    pair: tuple[int, int] | None = None
    rank: int | None = None
    host: int | None = None


@dataclass(frozen=True)
class Job:
    """A job whose truth is known.

    Attributes:
        framework: How the model is split, and overlapping events.
        steps: Steps of the capture.
        warm_steps: Steps before the capture.
        layers: Layers of a stage.
        micro_batches: Forward passes of a step, each sent on by itself.
        accumulation: Forward and backward passes of a step before gradients are reduced.
        layer_ns: Computation of a layer in the forward pass.
        data_ns: Transfer of gradients, or of the parameters of a layer.
        tensor_ns: Transfer of activations between ranks that split a layer.
        launch_ns: Time of the host for each kernel.
        length_spread: Standard deviation of the sequence lengths, as a share.
        rank_spread: What ranks differ by permanently, as a share.
        writes_waits: Calls in which the host waits for the device are in the traces.
        lost_metadata: Process groups whose kernels carry no metadata; "all" for every group.
        drift: Gain of each host's clock in nanoseconds for each nanosecond.
        clock_offset_ns: What the clocks of hosts differ by.
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
        """Return the stage of the pipeline that a rank works for."""
        return rank * self.stages // self.ranks

    def host(self, rank: int) -> int:
        """Return the number of the host that a rank runs on."""
        return rank // self.ranks_per_host

    def group(self, kind: str, rank: int) -> tuple[int, ...]:
        """Return the ranks of a process group (tp, dp, ep, world) that a rank belongs to."""
        if kind == "world":
            return tuple(range(self.ranks))
        if kind in {"tp", "ep"}:
            size = self.tensor if kind == "tp" else self.experts
            first = rank - rank % size
            return tuple(range(first, first + size))
        mine = (rank % self.tensor, self.stage(rank))
        return tuple(r for r in range(self.ranks) if (r % self.tensor, self.stage(r)) == mine)

    def neighbor(self, rank: int, direction: int) -> int | None:
        """Return the rank of the stage after (+1) or before (-1) that a rank talks to."""
        stage = self.stage(rank) + direction
        return rank + direction * self.ranks // self.stages if 0 <= stage < self.stages else None

    def link_factor(self, group: tuple[int, ...]) -> float:
        """Return the factor on transfers of a group: that of the slowest link they cross."""
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
        """Return the same job, noise included, without its faults."""
        return replace(self, faults=())

    def at_peer_speed(self) -> Job:
        """Return the same job without its slow links."""
        return replace(self, links=())
