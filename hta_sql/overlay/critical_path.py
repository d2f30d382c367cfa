"""Write a trace with its critical path: its events are marked, and its edges become arrows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hta_sql.library.sql_files import query_sql
from hta_sql.overlay.source import source_of
from hta_sql.traces.events import Event, trace_event
from hta_sql.traces.output import output_path
from hta_sql.traces.rewriting import Rewritten, rewrite_trace

if TYPE_CHECKING:
    from hta_sql.critical_path import CPEdge, CPGraph
    from hta_sql.store.query.trace_store import TraceStore

KEPT_CATEGORIES = frozenset({"user_annotation", "python_function"})
"""Categories of complete events that stay when only critical events are shown."""

_INSIDE_NS = 1000
"""An arrow from an event's end starts this much earlier, so that viewers find the event."""


def overlay_critical_path(
    store: TraceStore,
    graph: CPGraph,
    edges: list[CPEdge],
    *,
    folder: str | os.PathLike[str],
    only_critical: bool,
) -> Rewritten:
    """Write the trace of a rank with the argument ``critical`` on the events of its path.

    Args:
        store: Store that the rank was ingested into.
        graph: Graph of the rank, with a path.
        edges: Edges to draw.
        folder: Output folder for ``overlaid_critical_path_<trace>.json.gz``.
        only_critical: Omit complete events that are not on the path, except annotations and Python
            frames.

    Returns:
        Path and event count of the written file.

    Raises:
        ParameterError: The rank has several files.
        TraceError: The trace has changed since the ingest, or the folder is not writable.
        TraceNotFoundError: The trace no longer exists.
    """
    source = source_of(store, graph.run, graph.rank)
    skews = device_skews(store, graph.run, graph.rank)
    marking = PathMarking(graph, edges, source.zero_ns, skews, only_critical=only_critical)
    return rewrite_trace(
        source.path,
        output_path(source.path, prefix="overlaid_critical_path_", folder=folder),
        marking.arrows,
        marking,
        expect_events=source.event_count,
    )


def device_skews(store: TraceStore, run: str, rank: int) -> dict[int | None, int]:
    """Return how far each device clock is ahead of the host's [ns]; equal clocks are omitted."""
    query = query_sql("critical_path", "skewed_devices")
    return dict(store.sql(query, {"run": run, "rank": rank}).rows())


class PathMarking:
    """Marks the path's events as they stream by, and stores the tracks of events with arrows."""

    def __init__(
        self,
        graph: CPGraph,
        edges: list[CPEdge],
        to_file: int,
        skews: Mapping[int | None, int],
        *,
        only_critical: bool,
    ) -> None:
        self._graph, self._edges, self._to_file, self._skews = graph, edges, to_file, skews
        self._only_critical = only_critical
        self._critical = graph.critical_path_events_set
        self._on_path = graph.critical_path_edges_set
        ends = {event for edge in edges for event in graph.get_events_for_edge(edge)}
        self._tracks: dict[int, tuple[Any, Any]] = dict.fromkeys(ends, (None, None))

    def __call__(self, event: Event) -> bytes | None:
        """Return the JSON of an event, marked if it is on the path; None drops the event."""
        if event.event_id in self._tracks:
            self._tracks[event.event_id] = event.get("pid"), event.get("tid")
        if event.event_id in self._critical:
            return event.with_args(critical=1)
        is_dropped = (
            self._only_critical
            and event.get("ph") == "X"
            and event.get("cat") not in KEPT_CATEGORIES
        )
        return None if is_dropped else event.text

    def arrows(self) -> Iterator[bytes]:
        """Yield both ends of each edge; call it after all events were processed."""
        for number, edge in enumerate(self._edges):
            args = {
                "type": edge.type.value,
                "weight": edge.weight,
                "critical": int(edge in self._on_path),
            }
            for phase, node in (("s", edge.begin), ("f", edge.end)):
                yield self._arrow_end(phase, node, number, args)

    def _arrow_end(self, phase: str, node: int, number: int, args: dict[str, Any]) -> bytes:
        ts, event, is_start = self._graph.place(node)
        if not is_start:
            start, _, _ = self._graph.place(self._graph.start_of(event))
            ts -= min(_INSIDE_NS, ts - start)
        ts += self._skews.get(self._graph.device_of(node), 0)
        pid, tid = self._tracks[event]
        return trace_event(
            phase,
            "critical_path",
            ts=ts + self._to_file,
            id=number,
            cat="critical_path",
            pid=pid,
            tid=tid,
            bp="e" if phase == "f" else None,
            args=args,
        )
