"""Count the host events that span a critical path window, and explain a missing path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hta_sql.library.sql_files import query_sql
from hta_sql.text import counted

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["Windows", "count_windows"]


@dataclass(frozen=True)
class Windows:
    """Number of a rank's host events whose names contain a string: in the trace, and in scope."""

    rank: int
    annotation: str
    in_trace: int
    in_scope: int

    def __str__(self) -> str:
        named = f"with {self.annotation!r} in the name"
        left_out = self.in_trace - self.in_scope
        why = "by the selected steps, or by include_last_profiler_step=False"
        if not self.in_trace:
            return f"Rank {self.rank} has no host event {named}."
        if not self.in_scope:
            return f"Rank {self.rank} has {counted(left_out, 'host event')} {named}, all excluded: {why}."
        more = f"; {left_out} more excluded: {why}" if left_out else ""
        return (
            f"Rank {self.rank} has {counted(self.in_scope, 'host event')} {named}, numbered from 0 in "
            f"time order{more}."
        )


def count_windows(
    store: TraceStore,
    run: str,
    rank: int,
    annotation: str,
    *,
    steps: Iterable[int] | None = None,
    include_last_profiler_step: bool = False,
) -> Windows:
    """Count the host events of a rank whose names contain a string.

    Args:
        store: An open store.
        run: Run of the rank.
        rank: Rank to analyze.
        annotation: String to search for in the names.
        steps: Profiler steps in scope; default: all.
        include_last_profiler_step: Whether the last step is in scope.
    """
    scope = {
        "steps": None if steps is None else list(steps),
        "include_last_profiler_step": include_last_profiler_step,
    }
    wanted = {"run": run, "rank": rank, "annotation": annotation}
    ((in_trace, in_scope),) = store.sql(
        query_sql("critical_path", "windows"), {**wanted, **scope}
    ).rows()
    return Windows(rank, annotation, in_trace, in_scope)
