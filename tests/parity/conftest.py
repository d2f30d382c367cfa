"""Fixtures: one store with every public job, and HTA's results for these jobs.

The jobs and the results are next to the repository; without them, these tests are skipped. The
tests are slow (``make test-all``), because ingesting the jobs takes a minute. HTA's results for the
project's own traces are in the folder ``own`` and are compared in every test run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hta_sql import TraceStore
from hta_sql.hta.common.trace import Trace
from tests.parity.jobs import EXACT, TRACES, files_of, ingest_jobs
from tests.shared_stores import made_once


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in this folder as slow, except those of HTA's names."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_hta_names.py":
            item.add_marker(pytest.mark.slow(reason="large"))


@pytest.fixture(scope="session")
def jobs_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest one run per job; further captures of a job are runs named <job>-captureN."""
    if not EXACT.is_dir() or not TRACES.is_dir():
        pytest.skip("the public traces and their expected numbers are not beside the repository")
    with TraceStore(made_once(tmp_path_factory, "jobs", ingest_jobs)) as store:
        yield store


@pytest.fixture
def trace_of(tmp_path: Path) -> Iterator[Callable[[str], Trace]]:
    """Return a function that ingests a public job into a separate store."""
    opened = []

    def read(job: str) -> Trace:
        if not TRACES.is_dir():
            pytest.skip("the public traces are not beside the repository")
        for path in files_of(job):
            (tmp_path / path.name).write_bytes(path.read_bytes())
        opened.append(Trace(trace_dir=str(tmp_path)))
        return opened[-1]

    yield read
    for trace in opened:
        trace.close()
