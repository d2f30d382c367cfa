"""Golden tests: a tiny trace, a call in stock SQL, the rows that it must give.

The files are tests/golden/<topic>/<analysis>.test; :mod:`tests.golden_cases` says how they read.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.library.objects import load_library
from tests.golden_cases import Case, all_cases, difference, ingest_case, parse_cases, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hta_sql.store.trace_store import TraceStore


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Case], TraceStore]]:
    """Stores by their ``traces`` line, each ingested once; what many cases read is computed once."""
    stores: dict[tuple[str, bool], TraceStore] = {}
    library = load_library()
    with ExitStack() as opened:

        def store(case: Case) -> TraceStore:
            keeps = library.reads_derived(library.find(case.path.stem))
            if (case.traces, keeps) not in stores:
                path = tmp_path_factory.mktemp("golden") / "job.store"
                made = ingest_case(case.traces, path, keeps_derived=keeps)
                stores[case.traces, keeps] = opened.enter_context(made)
            return stores[case.traces, keeps]

        yield store


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_golden(case: Case, store_of: Callable[[Case], TraceStore]) -> None:
    """An analysis gives the rows that follow from its trace."""
    assert f"{case.path.stem}(" in case.call, f"{case.id} does not call {case.path.stem}"
    result = store_of(case).sql(case.call)
    if found := difference(case, result.columns, result.rows()):
        where = f"{case.path}:{case.line}"
        pytest.fail(f"{where}\n{case.truth}\n{case.call}\n\n{found}", pytrace=False)


def test_a_case_is_comment_traces_call_and_rows() -> None:
    """A golden file may hold several cases, and a call may have several lines."""
    text = "# About the file.\n\n# True.\ntraces: a.json\ncall: SELECT 1\nFROM x_v1()\n----\nn\n1\n"
    (case,) = parse_cases(Path("x_v1.test"), text)
    assert case == Case(
        Path("x_v1.test"), 3, "True.", "a.json", "SELECT 1\nFROM x_v1()", ["n", "1"]
    )


def test_cells_are_aligned_and_unambiguous() -> None:
    """NULL, booleans, fractions and empty text have one spelling each."""
    rows = [(None, True, 1 / 3, ""), (12345, False, 50.0, "Memcpy HtoD (Pinned -> Device)")]
    assert table(["a", "b", "c", "d"], rows) == [
        "a      b      c       d",
        "NULL   true   0.3333  (empty)",
        "12345  false  50.0    Memcpy HtoD (Pinned -> Device)",
    ]
