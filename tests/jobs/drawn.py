"""Random planted jobs, drawn from a seed, whose verdicts are hard to get right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.jobs.simulator import Rank, simulate
from tests.jobs.spec import MS, US, PlantedJob

LEAST_PCT, TRIES = 2.5, 8
FAULTS = ("slower_clock", "slower_kernel", "more_kernels", "host_bound", "loading")
HEALTHY: dict[str, dict[int, float]] = {
    name: {} for name in (*FAULTS, "saving", "throttled", "pausing")
}


@dataclass(frozen=True)
class Drawn:
    """A planted job and its expected verdicts.

    Attributes:
        job: The job.
        late: Slow rank ─▶ expected verdict and cause.
        has_slow_link: Whether the transfers of some ranks are slower than those of their peers.
    """

    job: PlantedJob
    late: dict[int, tuple[str, str]]
    has_slow_link: bool


def drawn(kind: str, seed: int) -> Drawn:
    """Draw a random job of a kind; if its fault costs less than 2.5 %, draw again."""
    for attempt in range(TRIES):
        random = Random(f"{kind}/{seed}/{attempt}")
        job = replace(KINDS[kind](random), seed=random.randrange(1 << 30))
        healthy = replace(job, **HEALTHY)  # type: ignore[arg-type]
        now = _length(simulate(job))
        if not job.late or 100 * (now - _length(simulate(healthy))) / now >= LEAST_PCT:
            is_part = job.late_steps and 2 * len(job.late_steps) < job.steps
            verdict = "intermittent" if is_part else "straggler"
            late = {rank: (verdict, cause) for rank, cause in job.late.items()}
            return Drawn(job, late, bool(job.slow_link or job.slow_host or job.slow_pair))
    raise ValueError(f"kind {kind!r}, seed {seed}: {TRIES} draws cost less than {LEAST_PCT} %")


def _length(ranks: list[Rank]) -> int:
    """Return the time from the end of a job's first collective to the end of the job."""
    first = max(rank.collectives[0].end for rank in ranks)
    return max(event.end for rank in ranks for event in rank.events) - first


def _base(random: Random, **changes: object) -> PlantedJob:
    job = PlantedJob(
        ranks=random.choice((4, 8)),
        steps=random.choice((5, 8, 12)),
        layers=random.choice((2, 4)),
        noise=random.uniform(0.005, 0.03),
        syncs=random.random() < 0.7,
        overlap=random.random() < 0.5,
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def _faulty(random: Random, job: PlantedJob, names: tuple[str, ...] = FAULTS) -> PlantedJob:
    name, rank = random.choice(names), random.randrange(job.ranks)
    amounts: dict[str, float] = {
        "slower_clock": random.uniform(1.15, 1.6),
        "slower_kernel": random.uniform(1.6, 3.0),
        "more_kernels": 1,
        "host_bound": round(random.uniform(80, 200)) * US,
        "loading": round(random.uniform(800, 3000)) * US,
    }
    # If the host ran ahead of its device, its additional work would be overlapped.
    job = replace(job, syncs=job.syncs or name in ("host_bound", "loading"))
    return replace(job, **{name: {rank: amounts[name]}})  # type: ignore[arg-type]


def _three(random: Random) -> PlantedJob:
    job = _base(random, ranks=16, tp=2, stages=2, steps=5, micro_batches=4, layers=2)
    return _faulty(random, replace(job, overlap=False))


def _stages(random: Random) -> PlantedJob:
    job = _base(random, ranks=8, stages=4, steps=6, micro_batches=4, layers=2, overlap=False)
    return _faulty(random, job, ("slower_clock", "slower_kernel"))


def _pausing(random: Random) -> PlantedJob:
    job = _base(random, steps=random.choice((8, 12)), ranks=8)
    rank = random.randrange(job.ranks)
    return replace(job, syncs=True, pausing={rank: random.uniform(0.25, 0.35)})


def _intermittent(random: Random) -> PlantedJob:
    job = _base(random, steps=20, layers=2, syncs=True, ranks=8)
    rank, steps = random.randrange(8), tuple(sorted(random.sample(range(1, 19), 3)))
    if random.random() < 0.5:
        return replace(job, late_steps=steps, slower_clock={rank: random.uniform(1.8, 2.6)})
    return replace(job, late_steps=steps, loading={rank: round(random.uniform(4, 20) * MS)})


def _checkpoint(random: Random) -> PlantedJob:
    job = _base(random, steps=10, syncs=True, ranks=8)
    saving = {0: round(random.uniform(8, 40) * MS)}
    return replace(job, saving=saving, late_steps=(random.randrange(2, 8),))


def _no_metadata(random: Random, lost: tuple[str, ...]) -> PlantedJob:
    job = _base(random, ranks=8, tp=random.choice((2, 4)), steps=6)
    job = _faulty(random, job)
    return replace(job, metadata="none") if len(lost) > 1 else replace(job, lost_metadata=lost)


def _slow_host(random: Random) -> PlantedJob:
    job = _base(random, ranks=32, tp=4, stages=2, hosts=4, steps=5, micro_batches=2, layers=2)
    job = replace(job, overlap=False, syncs=True, noise=0.01)
    return replace(job, slow_host={random.randrange(4): random.uniform(2.5, 5)})


def _few_steps(random: Random) -> PlantedJob:
    return _faulty(random, _base(random, steps=random.choice((3, 4))))


def _many(random: Random) -> PlantedJob:
    return _faulty(random, _base(random, ranks=64, steps=3, layers=2))


def _throttled(random: Random) -> PlantedJob:
    job = _base(random, steps=10, ranks=8)
    return replace(job, throttled={random.randrange(8): random.uniform(1.4, 2)})


def _quiet(random: Random) -> PlantedJob:
    return replace(_base(random), noise=random.uniform(0.02, 0.08))


KINDS: dict[str, Callable[[Random], PlantedJob]] = {
    "few steps": _few_steps,
    "data": lambda r: _faulty(r, _base(r)),
    "gathered": lambda r: _faulty(r, _base(r, gathers=True)),
    "tensor and data": lambda r: _faulty(r, _base(r, ranks=8, tp=2)),
    "all three": _three,
    "stages": _stages,
    "host pauses": _pausing,
    "throttled": _throttled,
    "some steps": _intermittent,
    "checkpoint": _checkpoint,
    "no metadata": lambda r: _no_metadata(r, ("tp", "dp")),
    "no metadata, one group": lambda r: _no_metadata(r, (r.choice(("tp", "dp")),)),
    "slow host": _slow_host,
    "many ranks": _many,
    "quiet": _quiet,
}
"""Kind ─▶ function that draws a job of this kind."""
