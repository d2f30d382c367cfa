"""Copies that hold computation up are found, although transfers hide them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hta_sql
from hta_sql.comparison.changes import compare_steps
from hta_sql.comparison.sides import Side
from tests.judgement.job import Fault, Job
from tests.judgement.kinds import planted
from tests.judgement.kineto import ingested, write
from tests.judgement.programs import simulate

FEW = Fault("copies", (0, 1, 2, 3), 0.1)
JOB = Job(framework="fsdp", ranks=4, steps=6, seed=1, faults=(FEW,))


@pytest.mark.parametrize("seed", [7004, 7005])
def test_slow_copies_under_prefetches_are_found(tmp_path: Path, seed: int) -> None:
    """The straggler is named, and the savings are within a point or a tenth of the truth."""
    job, machine, truth = planted("slow copies", seed)
    assert job.framework == "fsdp"
    with ingested(tmp_path, job, machine) as store:
        causes = {
            row["rank"]: row["cause"]
            for row in store.run("stragglers").records()
            if row["is_straggler"]
        }
        saved = {row["scenario"]: row["saved_pct"] for row in store.run("what_if").records()}
    assert causes == dict.fromkeys(truth.late, "copies")
    for scenario, expected in (
        ("no late rank", truth.saved_pct["no straggler"]),
        ("no transfer", truth.saved_pct["no transfer"]),
    ):
        assert saved[scenario] == pytest.approx(expected, rel=0.1, abs=1)


@pytest.mark.parametrize(
    ("before", "slow", "expected"),
    [
        ((FEW,), (1,), "Cause on rank 1: aten::copy_ (memory)"),
        ((FEW,), (0, 1, 2, 3), "Transfers take about as long, but compute overlaps less of them."),
        ((), (1,), "Cause on rank 1: aten::copy_ (memory)"),
        ((), (0, 1, 2, 3), "Operators added: aten::copy_ (memory)"),
    ],
)
def test_a_comparison_leads_with_the_copies(
    tmp_path: Path, before: tuple[Fault, ...], slow: tuple[int, ...], expected: str
) -> None:
    """Copies that take longer come before the transfers and waits that they cause."""
    control = replace(JOB, faults=before)
    test = replace(JOB, seed=2, faults=(*before, Fault("copies", slow, 0.4)))
    for run, job in {"control": control, "test": test}.items():
        write(tmp_path / run, job, simulate(job))
        hta_sql.ingest(tmp_path / run, tmp_path / "jobs.store", run=run).close()
    with hta_sql.open(tmp_path / "jobs.store") as store:
        message = compare_steps(Side(store, "control"), Side(store, "test")).message
    assert expected in message
