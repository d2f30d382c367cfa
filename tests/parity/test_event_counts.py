"""Every event of every public trace is in exactly one row, as counted by another JSON parser."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql import TraceStore
from tests.parity.jobs import JOBS, TRACES

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")

COUNTS = """
WITH
    placed AS (
        SELECT run, rank, event_id FROM events
        UNION ALL
        SELECT run, rank, event_id FROM quarantine
    )
SELECT k.source, k.event_count, count(*), count(DISTINCT p.event_id), min(p.event_id), max(p.event_id)
FROM ranks AS k
JOIN placed AS p ON p.run = k.run AND p.rank = k.rank
GROUP BY k.run, k.rank, k.source, k.event_count
"""

TORCH_CPU = sorted(path.name for path in (TRACES / "torch_cpu").glob("*") if path.is_dir())


@pytest.fixture(scope="session")
def torch_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest one run per CPU capture."""
    folder = tmp_path_factory.mktemp("torch") / "cpu.store"
    for case in TORCH_CPU:
        hta_sql.ingest_shard(TRACES / "torch_cpu" / case, folder, run=case, jobs=1, shard=(1, 1))
    with hta_sql.publish(folder) as store:
        yield store


def count_events(path: Path) -> int:
    """Parse a whole trace with the json module and count its events."""
    content = path.read_bytes()
    trace: Any = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    return len(trace["traceEvents"] if isinstance(trace, dict) else trace)


def check(store: TraceStore) -> int:
    """Compare the event count of each file in a store with its trace; return the total."""
    total = 0
    for source, stated, rows, events, first, last in store.sql(COUNTS).rows():
        want = count_events(Path(source))
        assert (stated, rows, events, first, last) == (want, want, want, 0, want - 1), source
        total += want
    return total


def test_every_event_of_every_job_has_one_row(jobs_store: TraceStore) -> None:
    """Event ids are contiguous from 0, and no event is lost, duplicated or added."""
    assert {run.split("-capture")[0] for run in jobs_store.runs()} == set(JOBS)
    assert check(jobs_store) > 1_000_000


def test_every_event_of_every_cpu_capture_has_one_row(torch_store: TraceStore) -> None:
    """No event of PyTorch's own CPU captures is lost, duplicated or added."""
    assert {run.split("-capture")[0] for run in torch_store.runs()} == set(TORCH_CPU)
    assert check(torch_store) > 0
