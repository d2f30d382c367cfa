"""Predictions for a job with a fault match a later run of the job without the fault."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.comparison.changes import compare_steps
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError
from tests.judgement.kinds import planted
from tests.judgement.kineto import write
from tests.judgement.programs import simulate

SEED = 4


def both_runs(kind: str, folder: Path, seed: int = SEED) -> Path:
    """Ingest a job as the run ``faulty`` and the same job without its faults as ``fixed``."""
    job, machine, _ = planted(kind, seed)
    fixed = replace(job.healthy(), links=())
    for run, one, ran in (("faulty", job, machine), ("fixed", fixed, simulate(fixed))):
        write(folder / run, one, ran)
        hta_sql.ingest(folder / run, folder / "job.store", run=run).close()
    return folder / "job.store"


def by_scenario(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Index rows by scenario."""
    return {row["scenario"]: row for row in rows}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest an FSDP job with a straggler, and the same job without it."""
    return both_runs("FSDP, hidden", tmp_path_factory.mktemp("later"))


def test_the_run_without_its_straggler_takes_as_long_as_predicted(store: Path) -> None:
    """The run without the straggler takes as long as predicted from the run with it."""
    with hta_sql.open(store) as opened:
        rows = by_scenario(opened.run("predictions", runs=["faulty", "fixed"]).arrow().to_pylist())
    right, recorded = rows["no late rank"], rows["as recorded"]
    assert right["verdict"] == "as predicted"
    assert right["predicted_low_ns"] <= right["measured_step_ns"] <= right["predicted_high_ns"]
    assert abs(right["diff_pct"]) < 1
    assert recorded["verdict"] == "faster than predicted"
    assert recorded["predicted_step_ns"] == recorded["control_step_ns"]


def test_a_run_that_was_not_fixed_is_slower_than_predicted(store: Path) -> None:
    """A run that still has the fault is slower than predicted."""
    with hta_sql.open(store) as opened:
        rows = by_scenario(opened.run("predictions", runs=["faulty", "faulty"]).arrow().to_pylist())
    assert rows["as recorded"]["verdict"] == "as predicted"
    assert rows["no late rank"]["verdict"] == "slower than predicted"
    assert rows["perfect overlap"]["verdict"] == "as predicted"


def test_compare_shows_predictions_next_to_the_measured_step(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``compare --predicted`` shows predictions in all formats, but only for whole runs."""
    runs = [f"{store}:faulty", f"{store}:fixed"]

    def told(*options: str) -> str:
        code = main(["compare", *runs, "--predicted", *options])
        assert (code == 0) == ("--ranks" not in options)
        return "".join(capsys.readouterr())

    (line,) = (line for line in told().splitlines() if line.startswith("no late rank"))
    assert line.endswith("as predicted")
    assert "| no late rank |" in told("--format", "markdown")
    rows = json.loads(told("--format", "json"))["predictions"]
    assert by_scenario(rows)["no late rank"]["verdict"] == "as predicted"
    assert "omit ranks and steps" in told("--ranks", "0")


def test_runs_of_two_stores_are_compared_with_predictions(store: Path, tmp_path: Path) -> None:
    """Predictions are the same if the runs are in two stores, but require whole runs."""
    job, _, _ = planted("FSDP, hidden", SEED)
    fixed = job.healthy()
    write(tmp_path / "fixed", fixed, simulate(fixed))
    hta_sql.ingest(tmp_path / "fixed", tmp_path / "fixed.store", run="fixed").close()
    with hta_sql.open(store) as one, hta_sql.open(tmp_path / "fixed.store") as other:
        rows = one.run("predictions", runs=["faulty", "fixed"]).arrow().to_pylist()
        sides = Side(one, "faulty"), Side(other, "fixed")
        assert list(compare_steps(*sides, predicted=True).predictions) == rows
        assert not compare_steps(*sides).predictions
        with pytest.raises(ParameterError, match="whole runs"):
            compare_steps(Side(one, "faulty", ranks=[0]), sides[1], predicted=True)


@pytest.mark.parametrize(
    ("kind", "scenario"),
    [("slow link, rank", "link at peers' speed"), ("accumulation", "no late rank")],
)
def test_other_faults_that_are_removed_are_as_predicted(
    kind: str, scenario: str, tmp_path: Path
) -> None:
    """Predictions hold if a slow link is fixed, and for a job with gradient accumulation."""
    with hta_sql.open(both_runs(kind, tmp_path)) as opened:
        rows = by_scenario(opened.run("predictions", runs=["faulty", "fixed"]).arrow().to_pylist())
    assert rows[scenario]["verdict"] == "as predicted"
    assert rows["as recorded"]["verdict"] == "faster than predicted"
