"""Jobs by the hundred: what one of them does not show another does, and each stands beside all the others.

``tiny``: each ``traces`` line of the golden cases, and random jobs. ``planted``: each kind of tests/jobs, its
times in whole ticks, so that much ends when something else begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.golden_cases import all_cases, traces_of
from tests.jobs.kinds import BOUND, KINDS, LINKS
from tests.jobs.spec import US
from tests.jobs.traces import write_job as write_planted
from tests.properties.traces import random_job
from tests.properties.traces import write_job as write_random

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pinned.jobs import Runs

SEEDS = range(3, 9)
"""Random jobs beside the tiny traces."""

TICK_NS = 5 * US

STEPS = 8
"""Steps of a planted job at most."""


def write_tiny(folder: Path) -> Runs:
    """Name the traces of each line, as runs of their own, and write the random jobs."""
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
    return runs
