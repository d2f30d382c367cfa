"""Golden tests: a tiny trace, a call in plain SQL, and the expected rows.

The files are tests/golden/<topic>/<analysis>.test. Their format is described in
:mod:`hta_sql.authoring.golden`.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.authoring.golden import Case, difference, parse_cases, table
from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.authoring.golden_messages import render
from hta_sql.errors import LibraryError
from hta_sql.library.objects import load_library
from tests.golden_cases import TRACES, all_cases
from tests.pinned.answers import GOLDEN, changes, pinned, whole_answers, whole_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenEngine]:
    """Return the engine that runs all cases."""
    folder = tmp_path_factory.mktemp("golden")
    with closing(GoldenEngine(folder, load_library(), CASES, TRACES)) as engine:
        yield engine


# Cases with the same ``traces`` line are adjacent, so that its tables are loaded only once.
CASES = sorted(all_cases(), key=lambda case: case.traces)


WHOLE = {case.id: (key, case) for key, case in whole_answers().items()}
"""Id of a golden case ─▶ its key in tests/pinned/golden.csv, and a case for its whole answer."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_golden(case: Case, engine: GoldenEngine) -> None:
    """An analysis returns the expected rows for its trace.

    The columns and rows that the case does not show are the pinned ones. After an intended change,
    run ``make pinned``.
    """
    assert f"{case.path.stem}(" in case.call, f"{case.id} does not call {case.path.stem}"
    columns, rows = engine.ask(case)
    if found := difference(case, columns, rows):
        where = f"{case.path}:{case.line}"
        pytest.fail(f"{where}\n{case.truth}\n{case.call}\n\n{found}", pytrace=False)
    key, whole = WHOLE.get(case.id, ("", case))
    if key in pinned(GOLDEN):  # tests/pinned checks that no key is missing
        assert changes(whole_of(*engine.ask(whole)), pinned(GOLDEN)[key]) == []


def test_a_case_is_comment_traces_call_and_rows() -> None:
    """A case consists of a comment, traces, a call that may span lines, and rows."""
    text = "# About the file.\n\n# True.\ntraces: a.json\ncall: SELECT 1\nFROM x_v1()\n----\nn\n1\n"
    (case,) = parse_cases(Path("x_v1.test"), text)
    assert case == Case(
        Path("x_v1.test"), 3, "True.", "a.json", "SELECT 1\nFROM x_v1()", ["n", "1"]
    )


@pytest.mark.parametrize(
    ("cell", "column", "text"),
    [
        (
            '@findings.ranks_missing {"rank_count": 1, "world_size": 8}',
            "message",
            render("findings.ranks_missing", {"rank_count": 1, "world_size": 8}),
        ),
        ("@findings.no_steps", "remedy", render("findings.no_steps", column="remedy")),
        ("@findings.no_steps", "reason", render("findings.no_steps")),
        ("@contextmanager", "message", "@contextmanager"),
    ],
)
def test_a_cell_names_a_message_by_its_code(cell: str, column: str, text: str) -> None:
    """A case that names a message code expects the current wording of that message."""
    case = Case(Path("x_v1.test"), 1, "True.", "a.json", "SELECT 1", [f"n  {column}", f"1  {cell}"])
    assert difference(case, ["n", column], [(1, text)]) == ""
    assert difference(case, ["n", column], [(1, f"{text} And more.")])


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("@findings.no_such", r"x_v1\.test:7: sql/messages has no message findings\.no_such"),
        ("@findings.no_steps {1}", r"x_v1\.test:7: .*the values are not valid JSON"),
    ],
)
def test_a_cell_that_names_no_message_is_an_error(cell: str, problem: str) -> None:
    """An unknown message in a cell is an error that names the line of the case."""
    case = Case(Path("x_v1.test"), 7, "True.", "a.json", "SELECT 1", ["message", cell])
    with pytest.raises(LibraryError, match=problem):
        difference(case, ["message"], [("A message.",)])


def test_cells_are_aligned_and_unambiguous() -> None:
    """NULL, booleans, fractions and empty strings each have a distinct representation."""
    rows = [(None, True, 1 / 3, ""), (12345, False, 50.0, "Memcpy HtoD (Pinned -> Device)")]
    assert table(["a", "b", "c", "d"], rows) == [
        "a      b      c       d",
        "NULL   true   0.3333  (empty)",
        "12345  false  50.0    Memcpy HtoD (Pinned -> Device)",
    ]
