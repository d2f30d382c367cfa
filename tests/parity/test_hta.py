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
from tests.parity.ledger import (
    CAUSES,
    EQUAL,
    MATRIX,
    PAIR_TABLE,
    TABLES,
    causes_of,
    documented,
    read_ledger,
    rows_of,
    unlisted,
)
from tests.parity.pairs import PAIR_FRAMES, PAIRS, lines_of_pair
from tests.parity.reasons import is_bare_list

DOCUMENTED = documented(MATRIX.read_text(encoding="utf-8"))

FIRST = {"equal", "none", "hta_crash"}
"""Kinds of lines that each frame has one of."""

needs_numbers = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")


@needs_numbers
@pytest.mark.parametrize("job", JOBS)
def test_frames_differ_from_htas_exactly_where_the_ledger_says(
    job: str, jobs_store: TraceStore
) -> None:
    """The frames of a job differ from HTA's in exactly the cells that the ledger lists.

    The document says for each analysis whether it is equal, and else why.
    """
    lines, known = lines_of_job(jobs_store, job), read_ledger()
    assert [line.frame for line in lines if line.kind in FIRST] == list(FRAMES)
    assert unlisted(lines, known) == []
    assert rows_of(lines, known) == DOCUMENTED[job]


@needs_numbers
@pytest.mark.parametrize("pair", PAIRS)
def test_diffs_are_htas_but_for_what_the_ledger_says(pair: str, jobs_store: TraceStore) -> None:
    """Comparisons of two traces differ from HTA's in exactly the cells that the ledger lists."""
    lines, known = lines_of_pair(jobs_store, pair), read_ledger()
    assert [line.frame for line in lines if line.kind in FIRST] == PAIR_FRAMES
    assert unlisted(lines, known) == []
    assert rows_of(lines, known) == DOCUMENTED[pair]


@needs_numbers
def test_the_ledger_and_the_document_cover_every_job() -> None:
    """The document has every job and pair, and the ledger and the document have no others."""
    assert {*DOCUMENTED} == {*JOBS, *PAIRS}
    assert {rule.job for rule in read_ledger()} <= {*JOBS, *PAIRS}


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
    for rule in read_ledger():
        assert bool(rule.causes) == (rule.frame != EQUAL), rule
        assert set(rule.causes.split()) <= explained, rule


def test_the_document_names_the_causes_of_the_ledger() -> None:
    """A cell of docs/hta_parity.md has the causes in the ledger; without a cause, it has a verdict."""
    rules = read_ledger()
    for job, rows in DOCUMENTED.items():
        tables = [PAIR_TABLE] if job in PAIRS else list(TABLES.values())
        for analyses, (_, *cells) in zip(tables, rows, strict=True):
            for frames, cell in zip(analyses.values(), cells, strict=True):
                causes = causes_of(job, frames, rules)
                assert cell == causes or (not causes and re.match("equal$|answered$|none: ", cell))
