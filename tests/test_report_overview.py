"""The first screen of the report: what it says of a run, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hta_sql
from hta_sql.report.overview import overview_markup
from hta_sql.report.sections import first_answers

TRACES = Path(__file__).parent / "traces"

JOBS = {
    "late": ["late_0.json", "late_1.json"],
    "seldom": ["waits_0.json", "waits_1.json"],
    "alone": ["overlap_two_streams.json"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """A job with a late rank, one with too little to tell, one of a single rank."""
    folder = tmp_path_factory.mktemp("overview") / "store"
    for run, names in JOBS.items():
        traces = {rank: str(TRACES / name) for rank, name in enumerate(names)}
        hta_sql.ingest(traces, folder, run=run).close()
    with hta_sql.open(folder) as opened:
        yield opened


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("late", "Rank 1 is late: it makes the others wait 18 % of the time; all its kernels take"),
        ("seldom", "No rank holds up the others by habit: 2 ranks compared. Rank 1 cost most: it"),
        ("alone", "Whether a rank is late cannot be said: the rank does not communicate"),
    ],
)
def test_who_is_late_stands_in_a_sentence(store: hta_sql.TraceStore, run: str, words: str) -> None:
    """Also that nobody is, or that nothing can be said."""
    scope = {"runs": [run]}
    assert words in overview_markup(first_answers(store, scope), scope)
