"""TraceAnalysis against HTA on every public job: equal, or listed with the cause.

HTA ran with its rounding of timestamps switched off, else nearly every cell of a trace with
nanoseconds would differ (Q5 in docs/hta_differences.md).
"""

from __future__ import annotations

import re

import pytest

from hta_sql import TraceStore
from tests.parity.hta_comparison import (
    DOCUMENT,
    FRAMES,
    document_with,
    lines_of_job,
    read_ledger,
    table_of,
)
from tests.parity.jobs import HTA, JOBS

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


@needs_numbers
@pytest.mark.parametrize("job", JOBS)
def test_frames_differ_from_htas_exactly_where_the_ledger_says(
    job: str, jobs_store: TraceStore
) -> None:
    """No cell more and no cell less differs than is listed; where HTA crashes, we answer."""
    listed = [line.fact for line in read_ledger() if line.job == job]
    assert [line.fact for line in lines_of_job(jobs_store.path, job)] == listed


@needs_numbers
def test_the_ledger_covers_every_job_and_frame() -> None:
    """Each job has a line for each frame, and no other job is listed."""
    covered = {(line.job, line.frame) for line in read_ledger()}
    assert covered == {(job, frame) for job in JOBS for frame in FRAMES}


def test_every_difference_has_a_cause_that_the_document_explains() -> None:
    """Nothing is listed without a cause, and each cause has a section in the document."""
    explained = set(re.findall(r"^### (\S+):", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    for line in read_ledger():
        differs = line.kind in {"value", "ours_only", "hta_only"}
        assert bool(line.causes) == differs, line
        assert set(line.causes.split()) <= explained, line


def test_the_table_of_the_document_is_that_of_the_ledger() -> None:
    """The table in docs/hta_differences.md is current."""
    assert DOCUMENT.read_text(encoding="utf-8") == document_with(table_of(read_ledger()))
