"""Checks that a selected run has each requested rank and step; the error lists the available ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hta_sql.errors import ParameterError, RankError
from hta_sql.library.sql_files import query_sql

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore


def check_scope(store: TraceStore, given: Mapping[str, Any]) -> None:
    """Raise if a requested rank or step is in none of the selected runs.

    Args:
        store: The store.
        given: Parameters of an analysis: ``runs``, ``ranks`` and ``steps`` are checked.

    Raises:
        RankError: No run has one of the ranks; the message lists the ranks.
        ParameterError: No run has one of the steps; the message lists the steps.
    """
    for key, known_of, error in (("ranks", _ranks, RankError), ("steps", _steps, ParameterError)):
        wanted = given.get(key)
        if not wanted:
            continue
        found = [
            (run, numbers)
            for run, numbers in known_of(store)
            if not given.get("runs") or run in given["runs"]
        ]
        known = {number for _, numbers in found for number in numbers}
        missing = [number for number in wanted if number not in known]
        if missing and (known or key == "steps"):
            raise error(f"No {key[:-1]} {missing[0]}; {_available(key, found)}.")


def _ranks(store: TraceStore) -> list[tuple[str, list[int]]]:
    return [(run, store.ranks(run)) for run in sorted(store.runs())]


def _steps(store: TraceStore) -> list[tuple[str, list[int]]]:
    return store.sql(query_sql("runs", "steps")).rows()


def _available(key: str, found: Sequence[tuple[str, Sequence[int]]]) -> str:
    from hta_sql.text import first_of, rank_spans  # noqa: PLC0415 - lazy, to start faster

    if not found:
        return f"the trace has no {key}"
    spans = [f"{rank_spans(numbers)} in run {run}" for run, numbers in found]
    return f"available {key}: {first_of(spans, 5, '; ')}"
