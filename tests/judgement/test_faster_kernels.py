"""Predicted savings of faster kernels match simulations with faster kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hta_sql
from tests.judgement.job import Fault
from tests.judgement.kinds import planted
from tests.judgement.kineto import write
from tests.judgement.programs import ATTENTION, simulate
from tests.judgement.score import POINTS, SHARE
from tests.judgement.truth import length

SEED = 7300


@pytest.mark.parametrize("kind", ["tp x dp", "pp x dp", "serving"])
def test_a_kernel_twice_as_fast_saves_what_the_faster_job_takes_less(
    kind: str, tmp_path: Path
) -> None:
    """The predicted saving of a kernel that takes half the time is correct within the tolerance.

    If communication takes no time, the saving equals that of the scenario without transfers.
    """
    job, _, _ = planted(kind, SEED)
    slow = replace(job, faults=(Fault("slower kernel", tuple(range(job.ranks)), 2.0),))
    machine = simulate(slow)
    write(tmp_path / "traces", slow, machine)
    before = length(slow, machine)
    after = length(job.healthy(), simulate(job.healthy()))
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "job.store") as store:
        rows = store.run("what_if_faster").arrow().to_pylist()
        gone = store.run("what_if_faster", time_factor=0).arrow().to_pylist()
        scenarios = {row["scenario"]: row for row in store.run("what_if").arrow().to_pylist()}
    right = 100 * (before - after) / before
    (saved,) = (row["saved_pct"] for row in rows if row["part"] == ATTENTION)
    assert right > 5
    assert saved == pytest.approx(right, abs=max(POINTS, SHARE * right))
    (saved,) = (row["saved_ns"] for row in gone if row["part"] == "communication")
    assert saved == pytest.approx(scenarios["no transfer"]["saved_ns"], abs=50_000)
