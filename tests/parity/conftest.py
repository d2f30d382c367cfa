"""One store with every public job, ingested once per session, and what others say about the jobs.

The jobs and the numbers lie beside the repository; where they are not there, these tests skip. They
are slow ones (``make test-all``): reading the jobs takes a minute. What HTA says of the project's
own traces, in the folder ``own``, is compared in every run.
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
    """Mark what reads the public jobs as slow: all but the names of HTA."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_hta_names.py":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def jobs_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """A store with one run per job; further captures of a job are runs named <job>-captureN."""
    if not EXACT.is_dir() or not TRACES.is_dir():
        pytest.skip("the public traces and their expected numbers are not beside the repository")
    with TraceStore(made_once(tmp_path_factory, "jobs", ingest_jobs)) as store:
        yield store


@pytest.fixture
def trace_of(tmp_path: Path) -> Iterator[Callable[[str], Trace]]:
    """A public job, read into a store of its own."""
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
