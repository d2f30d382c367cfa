"""Write a trace whose events are marked with the frequent kernel sequences they belong to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hta_sql.library.sql_files import query_sql
from hta_sql.overlay.source import source_of
from hta_sql.traces.events import Event, Json, trace_event
from hta_sql.traces.output import output_path
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

if TYPE_CHECKING:
    import pandas as pd

    from hta_sql.store.query.trace_store import TraceStore

NAMES_EVENT = "hta_sql: names of compressed events"

_NOTHING = Json("{}")


def overlay_sequences(
    store: TraceStore,
    events: pd.DataFrame,
    patterns: dict[int, dict[str, int]],
    *,
    run: str,
    rank: int,
    folder: str | os.PathLike[str],
    compress: bool,
) -> Rewritten:
    """Write the trace of a rank with an argument ``Patterns`` on the events of its sequences.

    Args:
        store: Store that the rank was ingested into.
        events: ``event_id`` and ``sequence_id`` of the analysis ``kernel_sequence_events``, sorted
            by event_id.
        patterns: ``sequence_id`` ─▶ ``{pattern: calls}``, the value of the argument.
        run: Run of the rank.
        rank: The rank.
        folder: Output folder for ``overlaid_<trace>.json.gz``.
        compress: Replace the names of all other complete events with numbers and drop their
            arguments. The arguments of the span "PyTorch Profiler" map the numbers to names;
            without such a span, an additional event after the last one does.

    Returns:
        Path and event count of the written file.

    Raises:
        ParameterError: The rank has several files.
        TraceError: The trace has changed since the ingest, or the folder is not writable.
        TraceNotFoundError: The trace no longer exists.
    """
    of_rank = {"run": run, "rank": rank}
    source = source_of(store, run, rank)
    names: list[str] = []
    if compress:
        rows = store.sql(query_sql("events", "names"), of_rank).rows()
        names = [name for (name,) in rows]
    marking = _Marking(events, patterns, names if compress else None, source.first_ts)
    return rewrite_trace(
        source.path,
        output_path(source.path, prefix="overlaid_", folder=folder),
        marking.extra_events,
        marking,
        expect_events=source.event_count,
    )


class _Marking:
    """Changes events in sequence; the events are looked up by id, so a restart is possible."""

    def __init__(
        self,
        events: pd.DataFrame,
        patterns: dict[int, dict[str, int]],
        names: list[str] | None,
        first_ts: int,
    ) -> None:
        ids, sequences = events["event_id"].tolist(), events["sequence_id"].tolist()
        self._sequence_of = dict(zip(ids, sequences, strict=True))
        self._patterns = {sequence: Json.of(known) for sequence, known in patterns.items()}
        self._numbers: dict[str, Json] | None = None
        if names is not None:
            self._numbers = {name: Json.of(str(n)) for n, name in enumerate(names)}
        self._first_ts = first_ts
        self._is_told = False

    def __call__(self, event: Event) -> bytes:
        sequence = self._sequence_of.get(event.event_id)
        if sequence is not None:
            return event.with_args(Patterns=self._patterns[sequence])
        if self._numbers is None or event.get("ph") != "X":
            return event.text
        name = event.get("name")
        if event.get("pid") == "Spans" and "PyTorch Profiler" in str(name):
            self._is_told = True
            return event.replace(args=self._meanings())
        shorter = {"args": _NOTHING} if "args" in event else {}
        if isinstance(name, str) and name in self._numbers:
            shorter["name"] = self._numbers[name]
        return event.replace(**shorter) if shorter else event.text

    def extra_events(self) -> list[bytes]:
        if self._numbers is None or self._is_told:
            return []
        where = {"cat": "Trace", "pid": "Spans", "tid": "hta_sql"}
        return [
            trace_event("X", NAMES_EVENT, ts=self._first_ts, dur=0, args=self._meanings(), **where)
        ]

    def _meanings(self) -> dict[str, str]:
        return {str(n): name for n, name in enumerate(self._numbers or {})}
