"""TraceAnalysis and TraceDiff equal HTA on every public job, except for listed differences.

HTA ran without its rounding of timestamps. Otherwise, nearly every cell of a trace with nanoseconds
would differ (Q5 in docs/hta_differences.md).
"""

from __future__ import annotations

import re

import pytest

from hta_sql import TraceStore
from tests.parity import hta_on_cpu_only
from tests.parity.comparison import lines_of_job
from tests.parity.hta_answers import FRAMES
from tests.parity.jobs import HTA, JOBS
from tests.parity.ledger import CAUSES, MATRIX, TABLES, document, read_ledger
from tests.parity.pairs import PAIR_FRAMES, PAIRS, lines_of_pair
from tests.parity.reasons import is_bare_list

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


@needs_numbers
@pytest.mark.parametrize("job", JOBS)
def test_frames_differ_from_htas_exactly_where_the_ledger_says(
    job: str, jobs_store: TraceStore
) -> None:
    """The frames of a job differ from HTA's in exactly the cells that the ledger lists."""
    listed = [line.fact for line in read_ledger() if line.job == job]
    assert [line.fact for line in lines_of_job(jobs_store, job)] == listed


@needs_numbers
@pytest.mark.parametrize("pair", PAIRS)
def test_diffs_are_htas_but_for_what_the_ledger_says(pair: str, jobs_store: TraceStore) -> None:
    """Comparisons of two traces differ from HTA's in exactly the cells that the ledger lists."""
    listed = [line.fact for line in read_ledger() if line.job == pair]
    assert [line.fact for line in lines_of_pair(jobs_store, pair)] == listed


@needs_numbers
def test_the_ledger_covers_every_job_and_frame() -> None:
    """The ledger covers every frame of every job and pair, and no others."""
    covered = {(line.job, line.frame) for line in read_ledger()}
    jobs = {(job, frame) for job in JOBS for frame in FRAMES}
    assert covered == jobs | {(pair, frame) for pair in PAIRS for frame in PAIR_FRAMES}


@needs_numbers
def test_what_hta_cannot_load_is_what_the_document_says() -> None:
    """HTA fails to load exactly the jobs whose trace is a bare list of events."""
    for job in JOBS:
        if job != hta_on_cpu_only.JOB:
            assert is_bare_list(job) == (not list((HTA / job).glob("*.parquet"))), job


def test_every_frame_is_in_one_table() -> None:
    """Every frame is in exactly one table of the document."""
    shown = [frame for table in TABLES.values() for frames in table.values() for frame in frames]
    assert sorted(shown) == sorted(FRAMES)


def test_every_difference_has_a_cause_that_the_document_explains() -> None:
    """Every difference in the ledger has a cause that the document explains."""
    explained = set(re.findall(r"^### (\S+):", CAUSES.read_text(encoding="utf-8"), re.MULTILINE))
    for line in read_ledger():
        differs = line.kind in {"value", "ours_only", "hta_only"}
        assert bool(line.causes) == differs, line
        assert set(line.causes.split()) <= explained, line


def test_the_document_is_that_of_the_ledger() -> None:
    """docs/hta_parity.md equals the document generated from the ledger, and has no empty cell."""
    text = MATRIX.read_text(encoding="utf-8")
    assert text == document(read_ledger())
    assert "|  |" not in text
