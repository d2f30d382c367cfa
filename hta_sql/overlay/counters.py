"""Write traces with counter tracks: queue length and memory bandwidth next to the events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hta_sql.errors import ParameterError
from hta_sql.overlay.source import source_of
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.events import trace_event
from hta_sql.traces.output import output_path
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

SERIES = {"queue": "queue_length_series_v1", "memory": "memory_bandwidth_series_v1"}
"""Name of a series ─▶ the analysis that computes it."""

SUFFIX = "_with_counters"
"""Part of a file name that makes the ingest skip the file."""

_BATCH_ROWS = 10_000


def write_counters(
    store: TraceStore,
    run: str,
    rank: int,
    series: Sequence[str] = tuple(SERIES),
    *,
    suffix: str = SUFFIX,
    output_dir: str | os.PathLike[str] | None = None,
    include_last_profiler_step: bool = False,
) -> Rewritten:
    """Write a copy of a rank's trace with counter tracks; all events stay unchanged.

    Args:
        store: Store that the trace was ingested into.
        run: Run of the rank.
        rank: The rank.
        series: ``queue`` adds ``Queue Length``, the queued operations of each stream. ``memory``
            adds the bandwidth of each kind of copy in GB/s: as recorded, or else bytes / duration.
        suffix: Suffix appended to the stem of the file name.
        output_dir: Output folder; default: the folder of the trace.
        include_last_profiler_step: Whether to include the last profiler step.

    Raises:
        RankError: The run has no such rank.
        ParameterError: A series does not exist, or the rank has several files.
        TraceError: The trace is missing or has changed, or the result cannot be written.
    """
    if unknown := sorted(set(series) - set(SERIES)):
        raise ParameterError(f"Unknown series {unknown[0]!r}; available: {', '.join(SERIES)}.")
    source = source_of(store, run, rank)
    scope: dict[str, Any] = {"runs": [run], "ranks": [rank]}
    scope["include_last_profiler_step"] = include_last_profiler_step
    events = counter_events(store, series, source.zero_ns, scope)
    target = output_path(source.path, suffix=suffix, folder=output_dir)
    return rewrite_trace(source.path, target, events, expect_events=source.event_count)


def counter_events(
    store: TraceStore, series: Sequence[str], zero_ns: int, scope: Mapping[str, Any]
) -> Callable[[], Iterator[bytes]]:
    """Compute series; return a function that yields their events on each call.

    Args:
        store: Store that the trace was ingested into.
        series: Keys of :data:`SERIES`.
        zero_ns: Start of the run on the file's clock [ns].
        scope: Parameters of the analyses.
    """
    tables = {name: store.run(SERIES[name], **scope).arrow() for name in series}

    def events() -> Iterator[bytes]:
        for name, table in tables.items():
            for batch in table.to_batches(_BATCH_ROWS):
                for row in batch.to_pylist():
                    yield from _EVENTS[name](row, zero_ns)

    return events


def _queue_event(row: dict[str, Any], zero: int) -> Iterator[bytes]:
    args = {"Queue Length": row["queue_length"]}
    where = {"pid": row["device"], "id": row["stream"]}
    yield trace_event("C", "Queue Length", ts=row["ts"] + zero, **where, args=args)


def _memory_event(row: dict[str, Any], zero: int) -> Iterator[bytes]:
    recorded, computed = row["bandwidth_gbps"], row["computed_gbps"]
    value = computed if recorded is None else recorded
    if value is not None:
        args = {"Memcpy BW": value}
        yield trace_event("C", row["name"], ts=row["ts"] + zero, pid=row["device"], args=args)


_EVENTS = {"queue": _queue_event, "memory": _memory_event}
