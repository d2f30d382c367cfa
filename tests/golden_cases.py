"""Golden cases of the shipped library, read from tests/golden/<topic>/<analysis>.test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import hta_sql
from hta_sql.authoring.golden import Case, cases_of, read_traces
from hta_sql.authoring.golden import traces_of as traces_of_case

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
TRACES = TESTS / "traces"

_DRAWN = re.compile(r"\bDrawn: (\d+ \w+(?:, \d+ \w+)*)")


def all_cases() -> list[Case]:
    """Return every case in every golden file."""
    return cases_of(GOLDEN)


def stated_marks(case: Case) -> dict[str, int]:
    """Return the expected number of marks by kind, from the comment of a case.

    The comment states them as ``Drawn: 3 rect, 1 text``.
    """
    found = _DRAWN.search(case.truth)
    parts = [part.split() for part in found[1].split(", ")] if found else []
    return {kind: int(count) for count, kind in parts}


def traces_of(traces: str) -> dict[str, dict[int, str]]:
    """Parse a ``traces`` line: run ─▶ rank ─▶ path.

    The actual number of a negative rank is read from its trace.
    """
    return traces_of_case(Case(GOLDEN, 0, "", traces, "", []), TRACES)


def ingest_case(traces: str, store: Path) -> TraceStore:
    """Ingest the traces that a ``traces`` line names into a store."""
    read_traces(traces_of(traces), store)
    return hta_sql.publish(store)  # one catalog for all runs
