"""Golden tests: a tiny trace, a call in stock SQL, the rows that it must give.

The files are tests/golden/<topic>/<analysis>.test; :mod:`tests.golden_cases` says how they read.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden_cases import Case, all_cases, difference, ingest_case, parse_cases, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hta_sql.store.trace_store import TraceStore


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], TraceStore]]:
    """Stores by their ``traces`` line, each ingested once."""
    stores: dict[str, TraceStore] = {}
    with ExitStack() as opened:

        def store(traces: str) -> TraceStore:
            if traces not in stores:
                folder = tmp_path_factory.mktemp("golden")
                stores[traces] = opened.enter_context(ingest_case(traces, folder / "job.store"))
            return stores[traces]

        yield store


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_golden(case: Case, store_of: Callable[[str], TraceStore]) -> None:
    """An analysis gives the rows that follow from its trace."""
    assert f"{case.path.stem}(" in case.call, f"{case.id} does not call {case.path.stem}"
    result = store_of(case.traces).sql(case.call)
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
