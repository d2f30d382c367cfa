"""Our frames for the project's own jobs equal HTA's, or differ by a proven cause.

HTA 0.6.1 was run once (``ask_hta.py``), and its results are in ``answers/``. Only the cells listed
in ``known_differences.csv`` differ; docs/hta_differences.md explains the causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hta_sql import TraceStore
from tests.parity import test_explained, test_explained_paths
from tests.parity.comparison import Line
from tests.parity.hta_answers import FRAMES
from tests.parity.ledger import CAUSES, EQUAL, read_ledger, unlisted
from tests.parity.our_answers import WINDOWS
from tests.parity.own.answers import answers
from tests.parity.own.comparison import OWN_LEDGER, lines_of_all
from tests.parity.own.jobs import OWN_JOBS, OWN_PAIRS, digest_of, ingest_own_jobs, own_files
from tests.parity.pairs import PAIR_FRAMES

LEDGER = read_ledger(OWN_LEDGER)


WITHOUT_CELLS = {
    "cupti_counters",
    "time_spent_blocked_on_full_queue_100",
    "time_spent_blocked_on_full_queue_1024",
}
"""Frames without a comparable cell, because no job has the data or HTA raises an error."""


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest one run per job."""
    folder = tmp_path_factory.mktemp("own") / "own.store"
    ingest_own_jobs(folder)
    with TraceStore(folder) as store:
        yield store


@pytest.mark.parametrize("job", [*OWN_JOBS, *OWN_PAIRS])
def test_hta_was_asked_about_these_traces(job: str) -> None:
    """HTA's results were computed from these traces; if this fails, run ask_hta.py again."""
    jobs = OWN_PAIRS.get(job, (job,))
    assert answers(job)["traces"] == " ".join(digest_of(own_files()[one]) for one in jobs)
    assert answers(job)["hta"] == "0.6.1"


@pytest.fixture(scope="module")
def lines(own_store: TraceStore) -> list[Line]:
    """Compare every frame of every job and pair."""
    return lines_of_all(own_store)


@pytest.mark.parametrize("job", [*OWN_JOBS, *OWN_PAIRS])
def test_frames_differ_from_htas_exactly_where_the_ledger_says(job: str, lines: list[Line]) -> None:
    """The frames of a job or pair differ from HTA's in exactly the cells that the ledger lists."""
    assert unlisted([line for line in lines if line.job == job], LEDGER) == []


def test_every_frame_has_equal_cells(lines: list[Line]) -> None:
    """Every frame has equal cells in at least one job, so none is compared only when empty."""
    equal = {line.frame for line in lines if line.kind == "equal" and line.cells}
    assert equal == {*FRAMES, *PAIR_FRAMES} - WITHOUT_CELLS
    assert sum(rule.cells for rule in LEDGER if rule.frame == EQUAL) > 8_000


def test_every_difference_has_a_cause_that_the_document_explains() -> None:
    """Every difference in the ledger has a cause that the document explains."""
    explained = set(re.findall(r"^### (\S+):", CAUSES.read_text(encoding="utf-8"), re.MULTILINE))
    for rule in LEDGER:
        assert bool(rule.causes) == (rule.frame != EQUAL), rule
        assert set(rule.causes.split()) <= explained, rule


DIFFERING = test_explained.differing(LEDGER)


@pytest.mark.parametrize(("job", "frame"), DIFFERING)
def test_the_causes_explain_the_difference(job: str, frame: str, own_store: TraceStore) -> None:
    """Plain Python computes HTA's numbers with all listed causes applied, and ours with none."""
    test_explained.check_causes(job, frame, DIFFERING[job, frame], own_store)


@pytest.mark.parametrize(
    ("job", "name"),
    [(j, name) for j in OWN_JOBS for name in WINDOWS if test_explained_paths.has_length(j, name)],
)
def test_the_causes_explain_the_length(job: str, name: str, own_store: TraceStore) -> None:
    """Plain Python computes HTA's path length with all causes applied, and ours with none."""
    causes = test_explained_paths.listed(job, name, LEDGER)
    test_explained_paths.check_length(job, name, own_store, causes)
