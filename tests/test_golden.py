"""Golden tests: a tiny trace, a call in stock SQL, the rows that it must give.

A file tests/golden/<topic>/<analysis>.test holds cases like this one::

    # Two kernels at once count once: busy from 0 to 15.
    traces: overlap_two_streams.json
    call: SELECT rank, compute_ns FROM temporal_breakdown_v1()
    ----
    rank  compute_ns
    0     15000

Lines that start with ``#`` say what is true and how the numbers come about; a blank line ends
a case. ``traces`` names files of tests/traces: ``a.json`` is rank 0 of run ``run``,
``1=b.json`` is rank 1, ``base/0=a.json`` is rank 0 of run ``base``. Cells are parted by two or
more spaces. Numbers with a fraction are rounded to four places, lists and structs written as
DuckDB casts them to text. The expected rows are worked out by hand from the trace, never copied
from the output.
"""

from __future__ import annotations

import difflib
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hta_sql.store.trace_store import TraceStore

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
_TRACE = re.compile(r"^(?:(?:(?P<run>[\w.-]+)/)?(?P<rank>\d+)=)?(?P<file>[\w.-]+)$")


@dataclass(frozen=True)
class Case:
    """One case of a golden file."""

    path: Path
    line: int
    truth: str
    traces: str
    call: str
    expected: list[str]

    @property
    def id(self) -> str:
        """Where it stands."""
        return f"{self.path.stem}:{self.line}"


def parse_cases(path: Path, text: str) -> Iterator[Case]:
    """Read the cases of a file; parts of comments alone are skipped."""
    number = 1
    for part in re.split(r"\n[ \t]*\n", text):
        lines = part.split("\n")
        line = number
        number += len(lines) + 1
        said = [text[1:].strip() for text in lines if text.startswith("#")]
        body = [text for text in lines if text.strip() and not text.startswith("#")]
        if not body:
            continue
        where = f"{path.name}:{line}"
        assert said, f"{where}: say in a comment what is true"
        assert "----" in body, f"{where}: no ---- between the call and its rows"
        cut = body.index("----")
        head = "\n".join(body[:cut])
        found = re.fullmatch(r"traces: (.+)\ncall: ([\s\S]+)", head)
        assert found, f"{where}: 'traces: FILES', then 'call: SQL', then '----'"
        assert body[cut + 1 :], f"{where}: no line with the names of the columns"
        yield Case(path, line, " ".join(said), found[1], found[2], body[cut + 1 :])


def all_cases() -> list[Case]:
    """Every case of every file."""
    paths = sorted(GOLDEN.glob("*/*.test"))
    return [case for path in paths for case in parse_cases(path, path.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], TraceStore]]:
    """Stores by their ``traces`` line, each ingested once."""
    stores: dict[str, TraceStore] = {}
    with ExitStack() as opened:

        def store(traces: str) -> TraceStore:
            if traces not in stores:
                folder = tmp_path_factory.mktemp("golden")
                stores[traces] = opened.enter_context(_ingest(traces, folder / "job.store"))
            return stores[traces]

        yield store


def _ingest(traces: str, store: Path) -> TraceStore:
    runs: dict[str, dict[int, str]] = {}
    for item in traces.split():
        found = _TRACE.match(item)
        assert found, f"traces: {item!r} is not FILE, RANK=FILE or RUN/RANK=FILE"
        path = TESTS / "traces" / found["file"]
        runs.setdefault(found["run"] or "run", {})[int(found["rank"] or 0)] = str(path)
    for run, ranks in runs.items():
        hta_sql.ingest(ranks, store, run=run).close()
    return hta_sql.open(store)


def cell(value: Any) -> str:
    """Write a value as a golden file does."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(round(value, 4))
    return str(value) or "(empty)"


def table(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """Write a result as a golden file does: aligned, its columns named in the first line."""
    cells = [columns, *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cells(lines: list[str]) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in lines]


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_golden(case: Case, store_of: Callable[[str], TraceStore]) -> None:
    """An analysis gives the rows that follow from its trace."""
    assert f"{case.path.stem}(" in case.call, f"{case.id} does not call {case.path.stem}"
    result = store_of(case.traces).sql(case.call)
    actual = table(result.columns, result.rows())
    if _cells(actual) != _cells(case.expected):
        expected = table(*_split(_cells(case.expected)))
        diff = "\n".join(difflib.ndiff(expected, actual))
        pytest.fail(f"{case.path}:{case.line}\n{case.truth}\n{case.call}\n\n{diff}", pytrace=False)


def _split(cells: list[list[str]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    width = max(map(len, cells))
    padded = [[*line, *[""] * (width - len(line))] for line in cells]
    return padded[0], [tuple(line) for line in padded[1:]]


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
