"""A rank that does more work while its peers wait for a slow stage anyway costs what it causes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.judgement.job import Fault, Job
from tests.judgement.kinds import planted
from tests.judgement.kineto import ingested
from tests.judgement.programs import simulate
from tests.judgement.truth import length

SLOW_STAGE = Fault("slower clocks", (4, 5, 6, 7), 2.0)
JOB = Job(framework="pipeline", ranks=8, stages=2, micro_batches=4, steps=8, faults=(SLOW_STAGE,))
LATE = 1


def answered(job: Job, folder: Path) -> dict[str, Any]:
    """Write and ingest a job, and return what is said about the late rank."""
    with ingested(folder, job, simulate(job)) as store:
        rows = store.run("stragglers").records()
    return next(row for row in rows if row["rank"] == LATE)


@pytest.mark.parametrize("seed", [3, 14, 15])
def test_a_rank_without_which_the_job_gains_nothing_is_not_named(tmp_path: Path, seed: int) -> None:
    """More work that ends before the slow stage does delays nobody, although peers wait longer."""
    job = replace(JOB, seed=seed, faults=(SLOW_STAGE, Fault("slower kernel", (LATE,), 1.15)))
    recorded, gained = length(job, simulate(job)), length(job, simulate(replace(JOB, seed=seed)))
    assert recorded - gained < 0.005 * recorded
    row = answered(job, tmp_path)
    assert row["verdict"] == "none"
    assert row["late_pct"] > 1


@pytest.mark.parametrize("seed", [9, 26, 53])
def test_the_cost_is_what_the_job_gains(tmp_path: Path, seed: int) -> None:
    """A rank that works longer than the slow stage costs what the job gains without it."""
    job = replace(JOB, seed=seed, faults=(SLOW_STAGE, Fault("slower clocks", (LATE,), 1.9)))
    recorded = length(job, simulate(job))
    gain_pct = 100 * (1 - length(JOB, simulate(replace(JOB, seed=seed))) / recorded)
    row = answered(job, tmp_path)
    assert row["verdict"] == "straggler"
    assert row["cost_pct"] == pytest.approx(gain_pct, rel=0.25)


def test_if_end_times_disagree_nobody_is_cleared(tmp_path: Path) -> None:
    """In a job whose end times disagree, ranks that arrive early are unknown like the others."""
    job, machine, _ = planted("no metadata", 81_130)
    with ingested(tmp_path, job, machine) as store:
        assert set(store.run("stragglers").df()["verdict"]) == {"unknown"}
