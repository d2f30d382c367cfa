"""Find the source file of a rank, to write a modified trace from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hta_sql.errors import ParameterError, RankError
from hta_sql.library.sql_files import query_sql
from hta_sql.traces.names import path_of

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore


@dataclass(frozen=True)
class SourceFile:
    """Source file of an ingested trace."""

    path: str
    event_count: int
    first_ts: int
    """Time of the first event on the file's clock [ns]; 0 if there are no events."""
    zero_ns: int
    """Start of the run on the file's clock [ns]."""


def source_of(store: TraceStore, run: str, rank: int) -> SourceFile:
    """Return the source file of a rank.

    Args:
        store: Store that the rank was ingested into.
        run: Run of the rank.
        rank: The rank.

    Raises:
        RankError: The run has no such rank.
        ParameterError: The rank has several files, but a modified trace needs a single one.
    """
    found = store.sql(query_sql("runs", "files_of_rank"), {"run": run, "rank": rank}).rows()
    if not found:
        raise RankError(f"No rank {rank} in run {run!r}; available ranks: {store.ranks(run)}.")
    if len(found) > 1:
        raise ParameterError(
            f"Rank {rank} of run {run!r} was recorded {len(found)} times, so it has several "
            "files, but a trace is written from a single file. Ingest the files without "
            "--join-spans, so that each becomes a separate run."
        )
    ((path, event_count, first_ts, offset_ns),) = found
    return SourceFile(path_of(path), event_count, first_ts or 0, (first_ts or 0) - offset_ns)
