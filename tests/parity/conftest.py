"""One store with every public job, ingested once per session, and reference results for the jobs.

The jobs and the results are next to the repository; without them, these tests skip. They
are slow tests (``make test-all``), because reading the jobs takes a minute. HTA's results on the project's
own traces, in the folder ``own``, are compared in every run.
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
    """Mark tests that read the public jobs as slow, except those of HTA's names."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_hta_names.py":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def jobs_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest one run per job; further captures of a job are runs named <job>-captureN."""
    if not EXACT.is_dir() or not TRACES.is_dir():
        pytest.skip("the public traces and their expected numbers are not beside the repository")
    with TraceStore(made_once(tmp_path_factory, "jobs", ingest_jobs)) as store:
        yield store


@pytest.fixture
def trace_of(tmp_path: Path) -> Iterator[Callable[[str], Trace]]:
    """Return a function that ingests a public job into its own store."""
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
