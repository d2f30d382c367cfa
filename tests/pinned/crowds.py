"""Hundreds of small jobs in one catalog, which together cover more than any single one.

``tiny`` has the traces of every golden case, and random jobs. ``planted`` has each kind of job in
tests/jobs, with times in whole ticks so that many events end when others begin, and fully random
jobs.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from tests.golden_cases import all_cases, traces_of
from tests.jobs.kinds import BOUND, KINDS, LINKS
from tests.jobs.spec import MS, US, Clock, PlantedJob
from tests.jobs.traces import write_job as write_planted
from tests.properties.traces import random_job
from tests.properties.traces import write_job as write_random

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pinned.jobs import Runs

SEEDS = range(3, 9)
"""Seeds of the random jobs that are added to the tiny traces."""

TICK_NS = 5 * US

STEPS = 8
"""Maximum number of steps of a planted job."""

DRAWN = range(40)
"""Seeds of the random planted jobs."""


def write_tiny(folder: Path) -> Runs:
    """Write the traces of each golden ``traces`` line as separate runs, and the random jobs."""
    runs: Runs = {}
    for number, line in enumerate(sorted({case.traces for case in all_cases()})):
        runs |= {f"{number:03}.{run}": ranks for run, ranks in traces_of(line).items()}
    for seed in SEEDS:
        (folder / f"{seed}").mkdir(parents=True)
        job = write_random(random_job(seed), folder / f"{seed}")
        runs |= {f"{run}.{seed}": ranks for run, ranks in job.items()}
    return runs


def write_planted_jobs(folder: Path) -> Runs:
    """Write the traces of the planted jobs."""
    runs: Runs = {}
    for name, job in (KINDS | LINKS | BOUND).items():
        run = name.replace(" ", "_").replace(",", "")
        coarse = replace(job, steps=min(job.steps, STEPS), tick_ns=TICK_NS)
        runs[run] = write_planted(folder / run, coarse)[0]
    for seed in DRAWN:
        runs[f"drawn_{seed}"] = write_planted(folder / f"{seed}", drawn_job(seed))[0]
    return runs


def drawn_job(seed: int) -> PlantedJob:
    """Return a random job that combines features, often near the thresholds between them."""
    rng = Random(seed)
    ranks, tp, stages = rng.choice(
        ((2, 1, 1), (3, 1, 1), (4, 1, 1), (4, 2, 1), (4, 1, 2), (4, 2, 2))
    )
    some = [rank for rank in range(ranks) if rng.random() < 0.4]
    job = PlantedJob(
        ranks=ranks,
        tp=tp,
        stages=stages,
        steps=rng.choice((3, 5, 6, 8, 16, 16, 40)),
        layers=rng.choice((1, 1, 2)),
        overlap=rng.random() < 0.3,
        waits_in_calls=rng.random() < 0.3,
        noise=rng.choice((0.0, 0.01, 0.3)),
        scatter_ns=rng.choice((0, 200, 2_000, 20_000)),
        hosts=rng.choice((1, 2, ranks)),
        names_hosts=rng.random() < 0.8,
        metadata=rng.choice(("full", "full", "without seq", "operator", "none")),
        seq=rng.choice(("right", "right", "doubled on one rank", "off on one rank")),
        tick_ns=rng.choice((1, 1, 1 * US, TICK_NS)),
        seed=seed,
    )
    drifts = (0.0, 2e-6, 1e-5, 5e-5, 1.9e-4, 2.1e-4, 1e-3)
    offsets = (0, 500, -1_100, 4 * US, -3 * MS)
    clocks = {rank: Clock(rng.choice(offsets), rng.choice(drifts)) for rank in some}
    late: dict[str, Any] = {
        "slower_clock": dict.fromkeys(some[:1], rng.choice((1.02, 1.3))),
        "throttled": dict.fromkeys(some[:1], 1.5),
        "slower_kernel": dict.fromkeys(some[:2], 1.5),
        "more_kernels": dict.fromkeys(some[:1], 1),
        "host_bound": dict.fromkeys(some[-1:], 60 * US),
        "loading": dict.fromkeys(some[-1:], 1 * MS),
    }
    lacks: dict[str, Any] = {
        "lost": {rank: tuple(rng.sample(range(20), rng.randrange(5))) for rank in some},
        "starts_late": dict.fromkeys(some, rng.choice((1, 3)) * MS),
        "ends_early": dict.fromkeys(some, rng.choice((1, 4)) * MS),
        "extra_collective": dict.fromkeys(some[:1], 2),
    }
    chosen = {name: late[name] for name in rng.sample(sorted(late), 2)}
    chosen |= {name: lacks[name] for name in rng.sample(sorted(lacks), rng.randrange(3))}
    return replace(job, clocks=clocks, **chosen)
