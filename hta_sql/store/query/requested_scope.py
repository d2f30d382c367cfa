"""Checks that requested runs, ranks and steps are in a store; the error lists the available ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hta_sql.errors import ParameterError, RankError
from hta_sql.library.sql_files import query_sql
from hta_sql.store.query.connection import Connection
from hta_sql.text import first_of, rank_spans

LISTED_RUNS = 20
"""Maximum number of runs that an error lists."""

LISTED_SPANS = 5
"""Maximum number of runs whose ranks or steps an error lists."""

Numbers = Mapping[str, Collection[int]]
"""Run ─▶ its ranks, or its profiler steps."""


def check_scope(store: str, connection: Connection, requested: Mapping[str, Any]) -> None:
    """Raise if a run is not in a store, or a rank or step is in none of the requested runs.

    Args:
        store: Path of the store, for the message.
        connection: Its connection; the steps are read only if steps are requested.
        requested: Parameters of an analysis: ``runs``, ``ranks`` and ``steps`` are checked.

    Raises:
        RankError: No such run or rank.
        ParameterError: No such step.
    """
    ranks: dict[str, list[int]] = {}
    for run, rank, _ in connection.opened().ranks:
        ranks.setdefault(run, []).append(rank)
    for run in requested.get("runs") or ():
        if run not in ranks:
            there = first_of(sorted(ranks), LISTED_RUNS)
            raise RankError(f"No run {run!r} in {store!r}; available runs: {there}.")
    if missing := _missing("rank", ranks, requested):
        raise RankError(missing)
    if requested.get("steps"):
        query, runs = query_sql("runs", "steps"), requested.get("runs")
        steps = dict(connection.run(lambda con: con.execute(query).fetchall(), runs))
        if missing := _missing("step", steps, requested):
            raise ParameterError(missing)


def _missing(kind: str, known: Numbers, requested: Mapping[str, Any]) -> str:
    """Return a sentence about the first requested rank or step that no run has; empty if none."""
    runs = requested.get("runs") or known
    found = {run: numbers for run, numbers in known.items() if run in runs}
    for number in requested.get(f"{kind}s") or ():
        if not any(number in numbers for numbers in found.values()):
            spans = [f"{rank_spans(numbers)} in run {run}" for run, numbers in found.items()]
            there = f"available {kind}s: {first_of(spans, LISTED_SPANS, '; ')}"
            return f"No {kind} {number}; {there if spans else f'the trace has no {kind}s'}."
    return ""
