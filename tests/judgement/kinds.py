"""Kinds of random jobs, whose parallelism, sizes, faults and noise are drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from tests.judgement.job import MS, US, Fault, FaultKind, Job, Noise, SlowLink
from tests.judgement.machine import Machine
from tests.judgement.programs import simulate
from tests.judgement.truth import Truth, truth_of

LEAST_PCT, TRIES = 2.5, 8
COMPUTE_FAULTS: tuple[FaultKind, ...] = ("slower clocks", "slower kernel", "more kernels")
ANY_FAULT: tuple[FaultKind, ...] = (*COMPUTE_FAULTS, "host-bound", "data loading")
NOISES: tuple[Noise, ...] = ("gauss", "heavy tails", "bursts", "autocorrelated", "host jitter")


def planted(kind: str, seed: int) -> tuple[Job, Machine, Truth]:
    """Draw a random job of a kind; return the job, its simulation and the correct answers.

    If a fault costs less than 2.5 %, the job is drawn again, because the fault is too small to
    judge. The job is also drawn again if a fault costs too little after the first step. The host
    then runs ahead and overlaps the delay, so a capture that starts in the first step does not show
    it.
    """
    for attempt in range(TRIES):
        random = Random(f"{kind}/{seed}/{attempt}")
        job = replace(KINDS[kind](random), seed=random.randrange(1 << 30))
        machine = simulate(job)
        truth = truth_of(job, machine)
        planted_pct = [v for k, v in truth.saved_pct.items() if k != "no transfer"]
        planted_pct += [pct for pct in (truth.least_alone_pct, truth.later_pct) if pct is not None]
        if all(pct >= LEAST_PCT for pct in planted_pct):
            return job, machine, truth
    raise ValueError(f"kind {kind!r}, seed {seed}: {TRIES} draws cost less than {LEAST_PCT} %")


def fault(
    random: Random, ranks: tuple[int, ...], kinds: tuple[FaultKind, ...] = ANY_FAULT
) -> Fault:
    """Draw a random fault for the given ranks."""
    kind = random.choice(kinds)
    amount = {
        "slower clocks": random.uniform(1.15, 1.6),
        "slower kernel": random.uniform(1.6, 3.0),
        "throttling": random.uniform(1.4, 2.0),
        "more kernels": 1,
        "hot expert": random.uniform(1.6, 3.0),
        "host-bound": random.uniform(150, 300) * US,
        "host pauses": random.uniform(1.0, 3.0) * MS,
        "data loading": random.uniform(1.0, 4.0) * MS,
        "checkpoint": random.uniform(10, 40) * MS,
        "copies": random.uniform(0.2, 0.6),
    }[kind]
    return Fault(kind, ranks, amount)


def base(random: Random, **changes: object) -> Job:
    """Draw a job with random sizes and noise."""
    job = Job(
        layers=random.choice((2, 4)),
        layer_ns=round(random.uniform(200, 600) * US),
        data_ns=round(random.uniform(100, 400) * US),
        tensor_ns=round(random.uniform(20, 60) * US),
        noise_share=random.uniform(0.005, 0.03),
        warm_steps=random.choice((0, 0, 1)),
        syncs_every_step=random.random() < 0.8,
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def _one(random: Random, job: Job, kinds: tuple[FaultKind, ...] = ANY_FAULT) -> Job:
    return replace(job, faults=(fault(random, (random.randrange(job.ranks),), kinds),))


def _few_steps(random: Random) -> Job:
    size = random.choice((4, 8))
    return _one(random, base(random, ranks=size, steps=random.choice((3, 4))))


def _fsdp(random: Random, *, exposed: bool) -> Job:
    job = base(random, framework="fsdp", ranks=random.choice((4, 8)), steps=random.choice((5, 8)))
    share = random.uniform(0.9, 1.5) if exposed else random.uniform(0.1, 0.3)
    return _one(random, replace(job, data_ns=round(job.layer_ns * share)))


def _copies(random: Random) -> Job:
    framework = random.choice(("ddp", "fsdp"))
    job = base(
        random, framework=framework, ranks=random.choice((4, 8)), steps=random.choice((5, 8))
    )
    return _one(random, job, ("copies",))


def _tensor(random: Random) -> Job:
    job = base(random, framework="tensor", ranks=8, tensor=random.choice((2, 4)), steps=6)
    return _one(random, job)


def _three(random: Random, *, steps: int = 5) -> Job:
    job = base(
        random,
        framework="pipeline",
        ranks=16,
        tensor=2,
        stages=2,
        steps=steps,
        micro_batches=4,
        layers=2,
    )
    return _one(random, job)


def _two(random: Random) -> Job:
    job = base(random, ranks=8, steps=random.choice((8, 12)))
    first, second = random.sample(range(8), 2)
    faults = (fault(random, (first,)), fault(random, (second,)))
    return replace(job, faults=faults)


def _half(random: Random, *, host: bool) -> Job:
    job = base(
        random, ranks=16 if host else random.choice((4, 8, 16)), steps=random.choice((6, 10))
    )
    slow = range(8, 16) if host else random.sample(range(job.ranks), job.ranks // 2)
    job = replace(job, ranks_per_host=8 if host else job.ranks)
    return replace(job, faults=(fault(random, tuple(sorted(slow)), COMPUTE_FAULTS),))


def _link(random: Random, where: str) -> Job:
    job = base(
        random, framework="tensor", ranks=16, tensor=4, ranks_per_host=4, steps=6,
        data_ns=round(random.uniform(300, 700) * US),
    )  # fmt: skip
    factor = random.uniform(2.5, 5)
    if where == "pair":
        job = replace(
            job, framework="pipeline", stages=4, tensor=2, micro_batches=4, layers=2,
            ranks_per_host=16, pipeline_ns=round(random.uniform(60, 120) * US),
        )  # fmt: skip
        first = random.randrange(12)
        link = SlowLink(factor * 2, pair=(first, first + 4))
    elif where == "rank":
        link = SlowLink(factor, rank=random.randrange(16))
    else:
        job = replace(job, ranks=32, ranks_per_host=8, tensor=4, steps=5)
        job = replace(job, framework="pipeline", stages=2, micro_batches=2, layers=2)
        link = SlowLink(factor, host=random.randrange(2))
    return replace(job, links=(link,))


def _hot_expert(random: Random) -> Job:
    job = base(random, framework="experts", ranks=8, experts=8, steps=6)
    return _one(random, job, ("hot expert",))


def _lengths(random: Random) -> Job:
    return base(
        random, ranks=8, steps=random.choice((8, 16)), length_spread=random.uniform(0.1, 0.3)
    )


def _host_pauses(random: Random) -> Job:
    return _one(random, base(random, ranks=8, steps=10), ("host pauses",))


def _throttled(random: Random) -> Job:
    job = base(random, ranks=8, steps=10)
    made = fault(random, (random.randrange(8),), ("throttling",))
    return replace(job, faults=(replace(made, steps=tuple(range(5, 10))),))


def _intermittent(random: Random) -> Job:
    job = base(random, ranks=8, steps=20, layers=2)
    made = fault(random, (random.randrange(8),), ("slower clocks", "data loading"))
    amount = made.amount * (6 if made.kind == "data loading" else 1.6)
    steps = tuple(sorted(random.sample(range(1, 19), 3)))
    return replace(job, faults=(replace(made, steps=steps, amount=amount),))


def _checkpoint(random: Random) -> Job:
    job = base(random, ranks=8, steps=10, layers=2, syncs_every_step=True)
    made = fault(random, (0,), ("checkpoint",))
    return replace(job, faults=(replace(made, steps=(random.randrange(2, 8),)),))


def _accumulation(random: Random) -> Job:
    job = base(random, ranks=8, steps=5, accumulation=random.choice((2, 4)), layers=2)
    return _one(random, job)


def _no_metadata(random: Random, *, every: bool) -> Job:
    job = base(random, framework="tensor", ranks=8, tensor=2, steps=6)
    lost = ("all",) if every else (random.choice(("tp", "dp")),)
    return replace(_one(random, job), lost_metadata=lost)


def _drift(random: Random) -> Job:
    job = base(random, ranks=16, ranks_per_host=4, steps=10)
    drift = tuple(random.uniform(-1, 1) * 2e-5 for _ in range(4))
    offsets = tuple(round(random.uniform(-5, 5) * MS) for _ in range(4))
    return replace(_one(random, job), drift=drift, clock_offset_ns=offsets)


def _missing(random: Random) -> Job:
    job = _one(random, base(random, ranks=8, steps=6))
    return replace(job, missing=(random.randrange(8),))


def _many(random: Random) -> Job:
    return _one(random, base(random, ranks=random.choice((64, 128)), steps=3, layers=2))


def _serving(random: Random) -> Job:
    job = base(
        random, framework="serving", ranks=random.choice((4, 8)), steps=4, accumulation=4, layers=4,
        layer_ns=round(random.uniform(80, 200) * US), loading_ns=20 * US, warm_steps=0,
        writes_steps=random.random() < 0.5,
    )  # fmt: skip
    return _one(random, replace(job, tensor=job.ranks), (*COMPUTE_FAULTS, "host-bound"))


def _noise(random: Random, noise: Noise) -> Job:
    job = base(
        random, ranks=random.choice((4, 8, 16)), steps=random.choice((3, 6, 12)), noise=noise
    )
    return replace(job, noise_share=random.uniform(0.02, 0.08))


def _pipeline_late(random: Random) -> Job:
    job = base(random, framework="pipeline", ranks=8, stages=4, steps=5, micro_batches=6, layers=2)
    return _one(random, job, ("slower clocks", "slower kernel"))


KINDS: dict[str, Callable[[Random], Job]] = {
    "DDP, few steps": _few_steps,
    "FSDP, hidden": lambda r: _fsdp(r, exposed=False),
    "FSDP, exposed": lambda r: _fsdp(r, exposed=True),
    "slow copies": _copies,
    "tp x dp": _tensor,
    "tp x pp x dp": _three,
    "pp x dp": _pipeline_late,
    "two culprits": _two,
    "half of the ranks": lambda r: _half(r, host=False),
    "a host of two": lambda r: _half(r, host=True),
    "slow link, pair": lambda r: _link(r, "pair"),
    "slow link, rank": lambda r: _link(r, "rank"),
    "slow link, host": lambda r: _link(r, "host"),
    "hot expert": _hot_expert,
    "sequence lengths": _lengths,
    "host pauses": _host_pauses,
    "throttled": _throttled,
    "intermittent": _intermittent,
    "checkpoint": _checkpoint,
    "accumulation": _accumulation,
    "no metadata": lambda r: _no_metadata(r, every=True),
    "no metadata, one group": lambda r: _no_metadata(r, every=False),
    "drift": _drift,
    "missing rank": _missing,
    "many ranks": _many,
    "serving": _serving,
    **{f"noise, {noise}": partial(_noise, noise=noise) for noise in NOISES},
}
"""Kind ─▶ function that draws a job of this kind."""
