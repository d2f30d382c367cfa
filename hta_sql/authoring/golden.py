"""Parse golden cases: a tiny trace, a call in standard SQL, and the expected rows.

A file ``<topic>/<analysis>.test`` contains cases like this one::

    # Two kernels at once count once: busy from 0 to 15.
    traces: overlap_two_streams.json
    call: SELECT rank, compute_ns FROM temporal_breakdown_v1()
    ----
    rank  compute_ns
    0     15000

Lines that start with ``#`` state the expected behavior and derive the numbers; a blank line ends a
case. ``traces`` lists files in the traces folder: ``a.json`` is rank 0 of run ``run``, ``1=b.json``
is rank 1, ``base/0=a.json`` is rank 0 of run ``base``. With ``?=a.json`` the ingest determines the
rank. Two or more spaces separate cells. Numbers with a fraction are rounded to four places; lists
and structs are written as DuckDB casts them to text. A message is identified by its code and the
values of its placeholders, not by its text: ``@findings.lost_spans {"span_count": 1}``. The
expected rows are derived by hand from the trace, never copied from the output.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hta_sql.api import ingest_shard
from hta_sql.authoring.golden_messages import message_of
from hta_sql.errors import LibraryError

_TRACE = re.compile(r"^(?:(?:(?P<run>[\w.-]+)/)?(?P<rank>\d+|\?)=)?(?P<file>[\w.-]+(?:/[\w.-]+)*)$")


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
        """Location of the case: file and line."""
        return f"{self.path.stem}:{self.line}"


def parse_cases(path: Path, text: str) -> Iterator[Case]:
    """Yield the cases of a file, skipping parts that contain only comments.

    Raises:
        LibraryError: A case is incomplete; the message has its line.
    """
    number = 1
    for part in re.split(r"\n[ \t]*\n", text):
        lines = part.split("\n")
        line = number
        number += len(lines) + 1
        said = [text[1:].strip() for text in lines if text.startswith("#")]
        body = [text for text in lines if text.strip() and not text.startswith("#")]
        if not body:
            continue
        _demand(path, line, bool(said), "add a comment that states what the case checks")
        _demand(path, line, "----" in body, "write ---- between the call and the expected rows")
        cut = body.index("----")
        found = re.fullmatch(r"traces: (.+)\ncall: ([\s\S]+)", "\n".join(body[:cut]))
        _demand(path, line, bool(found), "write 'traces: FILES', 'call: SQL', then '----'")
        _demand(path, line, len(body) > cut + 1, "write the column names below ----")
        traces, call = found.groups() if found else ("", "")
        yield Case(path, line, " ".join(said), traces, call, body[cut + 1 :])


def _demand(path: Path, line: int, kept: bool, wanted: str) -> None:
    if not kept:
        raise LibraryError(f"{path}:{line}: {wanted}.")


def cases_of(folder: Path) -> list[Case]:
    """Return the cases in all files of a folder, sorted by topic.

    Raises:
        LibraryError: A case is incomplete; the message has its line.
    """
    paths = sorted(folder.glob("*/*.test"))
    return [case for path in paths for case in parse_cases(path, path.read_text(encoding="utf-8"))]


def traces_of(case: Case, folder: Path) -> dict[str, dict[int, str]]:
    """Parse the ``traces`` line of a case: run ─▶ rank ─▶ path; negative ranks are unknown.

    Raises:
        LibraryError: The line is malformed, or a file does not exist.
    """
    runs: dict[str, dict[int, str]] = {}
    for item in case.traces.split():
        found = _TRACE.match(item)
        if not found or not (folder / found["file"]).is_file():
            wanted = (
                f"FILE, RANK=FILE or RUN/RANK=FILE, where FILE is the name of a file in {folder}"
            )
            raise LibraryError(
                f"{case.path}:{case.line}: traces: {item!r} does not name a trace; write {wanted}."
            )
        ranks = runs.setdefault(found["run"] or "run", {})
        rank = -1 - len(ranks) if found["rank"] == "?" else int(found["rank"] or 0)
        ranks[rank] = str(folder / found["file"])
    return runs


def read_traces(runs: dict[str, dict[int, str]], store: Path) -> None:
    """Ingest some or all traces of a ``traces`` line, without a catalog."""
    for run, ranks in runs.items():
        traces_of_run = list(ranks.values()) if min(ranks) < 0 else ranks
        ingest_shard(traces_of_run, store, run=run, jobs=1, shard=(1, 1))


def cell(value: Any) -> str:
    """Format a value as in a golden file."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(round(value, 4))
    return str(value) or "(empty)"


def table(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """Format a result as in a golden file: aligned, with the column names in the first line."""
    cells = [columns, *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def cells(lines: list[str]) -> list[list[str]]:
    """Split the lines of a table into cells."""
    return [re.split(r" {2,}", line.strip()) for line in lines]


def difference(case: Case, columns: list[str], rows: list[tuple[Any, ...]]) -> str:
    """Return the diff between a result and the expected rows; empty if they are equal."""
    actual, expected = table(columns, rows), _with_messages(case)
    if cells(actual) == expected:
        return ""
    return "\n".join(difflib.ndiff(table(*_split(expected)), actual))


def _with_messages(case: Case) -> list[list[str]]:
    names, *rows = cells(case.expected)
    try:
        return [
            names,
            *([message_of(*one) for one in zip(row, names, strict=False)] for row in rows),
        ]
    except LibraryError as error:
        raise LibraryError(f"{case.path}:{case.line}: {error}") from error


def _split(cells: list[list[str]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    width = max(map(len, cells))
    padded = [[*line, *[""] * (width - len(line))] for line in cells]
    return padded[0], [tuple(line) for line in padded[1:]]
