"""Define the specification of a synthetic job: an immutable value, validated on creation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_HOUR_NS = 3_600_000_000_000

NcclNames = Literal["modern", "old"]


@dataclass(frozen=True)
class JobSpec:
    """Specification of a data-parallel training job.

    The same spec always gives the same bytes. Times are integer nanoseconds. Unless documented
    otherwise, keys of mappings are ranks; ranks without a key are unchanged.
    """

    ranks: int = 8
    """Number of processes of the job; each has one GPU, and a host has eight GPUs."""
    steps: int = 4
    """Number of profiler steps in the trace."""
    first_step: int = 10
    """Number of the first `ProfilerStep#N`."""
    layers: int = 4
    """Number of blocks of the model; the backward pass of each block ends in one all-reduce."""
    ops_per_layer: int = 8
    """Number of forward operators per block, which determines the size of a trace."""
    comm_streams: int = 1
    """Number of communication streams, each with its own process group; layers alternate."""
    collective_metadata: bool = True
    """Write `Collective name`, message sizes, process groups and `Seq`."""
    nccl_names: NcclNames = "modern"
    """Naming of communication kernels: `ncclDevKernel_…` or `ncclKernel_…`."""
    stragglers: Mapping[int, int] = field(default_factory=dict)
    """Rank ─▶ extra data loading time in every step."""
    late_steps: tuple[int, ...] = ()
    """Steps in which `stragglers` are late; empty: all steps."""
    step_delays: Mapping[int, int] = field(default_factory=dict)
    """Step ─▶ extra host time of every rank at its end, such as for a checkpoint."""
    slow_kernels: Mapping[int, float] = field(default_factory=dict)
    """Rank ─▶ duration factor of its computation kernels."""
    slow_steps: Mapping[int, float] = field(default_factory=dict)
    """Step ─▶ duration factor of the computation kernels launched in the step, on all ranks."""
    kernel_factors: Mapping[str, float] = field(default_factory=dict)
    """Part of a kernel's name ─▶ duration factor of such kernels."""
    clock_offsets_ns: Mapping[int, int] = field(default_factory=dict)
    """Rank ─▶ time by which its clock is ahead: its events appear that much later."""
    base_shifts_ns: Mapping[int, int] = field(default_factory=dict)
    """Rank ─▶ time added to `baseTimeNanoseconds` and subtracted from `ts`; absolute times stay."""
    memory_events: bool = False
    """Write an instant `[memory]` for each allocation and each release."""
    python_stacks: bool = False
    """Write Python frames, including `nn.Module: …`."""
    sync_events: bool = False
    """Write device-side `cuda_sync` events."""
    driver_launches: bool = True
    """Launch matrix kernels with `cuLaunchKernelEx` (cuda_driver), others with cudaLaunchKernel."""
    graph_launches: bool = False
    """Launch the optimizer as a CUDA graph: one cudaGraphLaunch, many kernels."""
    early_kernels: int = 0
    """Number of kernels launched before the trace began, which therefore have no launch call."""
    lost_launch_every: int = 0
    """Omit every N-th launch call from the trace, like a full buffer; 0 omits none."""
    seed: int = 0
    """Seed of the jitter of all durations."""
    base_time_ns: int = 1_759_300_074_000_000_000
    """`baseTimeNanoseconds`: the origin of `ts`."""
    start_ns: int = 6_322_354_292_000_000
    """Start of the trace, relative to the base time."""
    host_name: str = "node"
    """Prefix of host names: `<host_name>-0`, `<host_name>-1`, …"""
    gzip: bool = True
    """Write `.json.gz`; otherwise `.json`."""

    def __post_init__(self) -> None:
        """Validate the specification."""
        for name in ("ranks", "steps", "layers", "ops_per_layer", "comm_streams"):
            _require(getattr(self, name) >= 1, f"{name} must be at least 1")
        for name in ("first_step", "early_kernels", "lost_launch_every", "base_time_ns"):
            _require(getattr(self, name) >= 0, f"{name} must not be negative")
        _require(self.nccl_names in ("modern", "old"), "nccl_names must be 'modern' or 'old'")
        _require(
            bool(self.host_name) and not set(self.host_name) & set('/\\"'),
            "host_name must be a plain, non-empty name",
        )
        for name in ("stragglers", "slow_kernels", "clock_offsets_ns", "base_shifts_ns"):
            strangers = sorted(set(getattr(self, name)) - set(range(self.ranks)))
            _require(not strangers, f"{name} names ranks that the job does not have: {strangers}")
        _require(min(self.stragglers.values(), default=0) >= 0, "stragglers must not be negative")
        _require(min(self.slow_kernels.values(), default=1) > 0, "slow_kernels must be positive")
        _require(
            all(abs(offset) <= _HOUR_NS for offset in self.clock_offsets_ns.values()),
            "clock_offsets_ns must stay within an hour",
        )
        earliest = min((self.shift_ns(rank) for rank in range(self.ranks)), default=0)
        _require(self.start_ns + earliest >= 0, "start_ns must keep every ts at or above zero")

    def shift_ns(self, rank: int) -> int:
        """Return the difference between a rank's `ts` and the simulated time [ns]."""
        return self.clock_offsets_ns.get(rank, 0) - self.base_shifts_ns.get(rank, 0)

    def rank_base_time_ns(self, rank: int) -> int:
        """Return the `baseTimeNanoseconds` that the rank writes."""
        return self.base_time_ns + self.base_shifts_ns.get(rank, 0)

    def host_of(self, rank: int) -> str:
        """Return the name of the rank's host."""
        return f"{self.host_name}-{rank // 8}"

    def device_of(self, rank: int) -> int:
        """Return the index of the rank's GPU on its host."""
        return rank % 8

    def pid_of(self, rank: int) -> int:
        """Return the process id of a rank, which is also the id of its main thread."""
        return 4000 + 100 * (rank % 8)


def _require(truth: bool, message: str) -> None:
    if not truth:
        raise ValueError(message)
