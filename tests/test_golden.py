"""Golden tests: a tiny trace, a call in stock SQL, the rows that it must give.

The files are tests/golden/<topic>/<analysis>.test; :mod:`tests.golden_cases` says how they read.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden_cases import Case, all_cases, difference, parse_cases, table
from tests.golden_engine import GoldenEngine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenEngine]:
    """The engine that all cases are asked in."""
    with closing(GoldenEngine(tmp_path_factory.mktemp("golden"))) as engine:
        yield engine


# Those of one ``traces`` line in a row: its tables are put in place once.
CASES = sorted(all_cases(), key=lambda case: case.traces)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_golden(case: Case, engine: GoldenEngine) -> None:
    """An analysis gives the rows that follow from its trace."""
    assert f"{case.path.stem}(" in case.call, f"{case.id} does not call {case.path.stem}"
    columns, rows = engine.ask(case)
    if found := difference(case, columns, rows):
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
