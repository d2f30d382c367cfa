"""Fixture with a simulated job, opened as HTA's users do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.synthetic import Job, JobSpec, write_job

SPEC = JobSpec(ranks=2, steps=3, layers=2)


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Write a job of two ranks and three steps."""
    return write_job(tmp_path_factory.mktemp("job") / "traces", SPEC)


@pytest.fixture(scope="module")
def analysis(job: Job) -> Iterator[TraceAnalysis]:
    """Open the job as a TraceAnalysis."""
    with TraceAnalysis(trace_dir=job.files[0].parent) as opened:
        yield opened
