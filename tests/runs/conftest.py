"""Fixtures of the tests of runs: a trace, and a store with three runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs.writing import STATED, write_trace
from tests.shared_stores import ingest_only


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Write a trace that states many properties of its run."""
    return write_trace(tmp_path / "rank0.json", **STATED)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest three runs of 1, 2 and 3 February 2026; the first two have the same job tag."""
    folder = tmp_path_factory.mktemp("runs")
    for day, tags in enumerate(({"job": "a"}, {"job": "a"}, {"job": "b"})):
        start = {"baseTimeNanoseconds": 1_769_904_000_000_000_000 + day * 86_400_000_000_000}
        trace = write_trace(folder / "rank0.json", **start)
        ingest_only(trace, folder / "job.store", run=f"day{day + 1}", tags=tags)
    return folder / "job.store"


@pytest.fixture
def store(three_runs: Path, tmp_path: Path) -> Path:
    """Copy the store with three runs, so that a test can change it."""
    return Path(shutil.copytree(three_runs, tmp_path / "job.store"))
