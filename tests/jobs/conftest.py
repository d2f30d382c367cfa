"""Fixtures for a database in which every planted job is a run."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.jobs.kinds import BOUND, JUDGED, KINDS, LINKS
from tests.jobs.simulator import Collective
from tests.jobs.spec import PlantedJob
from tests.jobs.tables import DATABASE, database, derive, fill, rows_of
from tests.jobs.traces import Trace, capture
from tests.shared_stores import made_once

CAPTURED = "captured.pickle"


@dataclass(frozen=True)
class Jobs:
    """A database of planted jobs, and their captured traces by run."""

    con: duckdb.DuckDBPyConnection
    runs: dict[str, tuple[PlantedJob, list[Trace]]]

    def collectives(self, run: str) -> list[Collective]:
        """Return every rank's part in each collective that all of its ranks captured."""
        _, traces = self.runs[run]
        parts = [c for trace in traces for c in trace.did.collectives if c.event is not None]
        found: dict[object, int] = {}
        for part in parts:
            found[part.key] = found.get(part.key, 0) + 1
        return [part for part in parts if found[part.key] == len(part.group)]


@pytest.fixture(scope="session")
def all_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Simulate and capture all planted jobs once, and open their database."""
    folder = made_once(tmp_path_factory, "planted_jobs", _make).parent
    runs = pickle.loads((folder / CAPTURED).read_bytes())  # noqa: S301 - written below
    with duckdb.connect(str(folder / DATABASE), read_only=True, config={"threads": 2}) as con:
        yield Jobs(con, runs)


def _make(store: Path) -> None:
    runs = {run: (job, capture(job)) for run, job in (KINDS | LINKS | BOUND | JUDGED).items()}
    (store.parent / CAPTURED).write_bytes(pickle.dumps(runs))
    with database(store.parent) as con:
        fill(con, rows_of(runs))
        derive(con)


@pytest.fixture
def jobs(all_jobs: Jobs) -> Iterator[Jobs]:
    """Open a cursor for each test, so that unread results do not affect other tests."""
    with all_jobs.con.cursor() as cursor:
        yield Jobs(cursor, all_jobs.runs)
