"""Tests that the benchmark workers return results for a small job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.calls import OPERATOR, OURS
from benchmarks.jobs import BenchmarkJob
from benchmarks.measure import run_worker
from benchmarks.paired import Table, _doubtful
from benchmarks.workers.calls import CALLS
from hta_sql.synthetic import JobSpec, write_job

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the traces of two ranks with three steps each."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, JobSpec(ranks=2, steps=3, layers=1, ops_per_layer=4))
    return folder


def test_all_calls_of_hta_are_answered(traces: Path, tmp_path: Path) -> None:
    """Every HTA call returns a result; otherwise, the benchmark would time an error."""
    files = dict(enumerate(sorted(map(str, traces.iterdir()))))
    about = {"files": files, "all_ranks": True, "operator": OPERATOR}
    asked = {"package": OURS, "store": str(tmp_path / "job.store"), **about}
    laps = run_worker(sys.executable, "calls", asked).answer["laps"]
    assert laps.keys() == {"import", "open", *CALLS}
    assert {name: lap["error"] for name, lap in laps.items() if "error" in lap} == {}


def test_a_slowdown_is_told_by_the_rounds(tmp_path: Path) -> None:
    """A slowdown is judged within each round, because both trees may be slower in later rounds."""
    table = Table()
    for slow in (1.0, 1.0, 1.0, 2.0, 2.0):
        for row, now in (("a: ingest", 1.0), ("b: ingest", 1.3), ("import hta_sql", 1.0)):
            table.add(row, "before", slow)
            table.add(row, "now", slow * now)
    assert table.slower() == ["b: ingest"]
    jobs = [BenchmarkJob(name, tmp_path, 0) for name in ("a", "b")]
    assert [job.name for job in _doubtful(table, jobs)] == ["b"]
    assert _doubtful(Table(), jobs) == []
    alone = Table({"import hta_sql": {"before": [1.0], "now": [1.2]}})
    assert [job.name for job in _doubtful(alone, jobs)] == ["a"]
