"""States which traces are missing or could not be read completely: answers cover only the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hta_sql.library.sql_files import query_sql
from hta_sql.text import counted

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

SHOWN = 3
"""Maximum number of ranks of a run that are named."""


def missing_ranks(store: TraceStore, runs: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Return a sentence about the missing ranks of each run that is not complete."""
    return {
        run: [
            f"has {count:,} of {counted(world, 'rank')} of the job: a missing rank may be the straggler."
        ]
        for run, count, world in store.sql(query_sql("runs", "incomplete")).rows()
        if not runs or run in runs
    }


def loss_sentences(store: TraceStore, runs: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Return sentences about the lost parts of traces, by run; runs without losses are left out.

    Costs one small query unless something was lost.
    """
    damaged = [
        run
        for (run,) in store.sql(query_sql("runs", "with_losses")).rows()
        if not runs or run in runs
    ]
    if not damaged:
        return {}
    found: dict[str, list[str]] = {}
    for row in store.run("findings", runs=damaged).records():
        if row["finding"] == "lost_spans":
            found.setdefault(row["run"], []).append(f"rank {row['rank']}: {row['message']}")
    return {run: _shortened(sentences) for run, sentences in found.items()}


def _shortened(sentences: list[str]) -> list[str]:
    left = len(sentences) - SHOWN
    if left <= 0:
        return sentences
    return [*sentences[:SHOWN], f"{left} more ranks: hta-sql doctor lists them."]
