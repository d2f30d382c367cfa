"""A part of a job as one trace: some ranks, a window of time, some categories, for a trace viewer.

Events stand as the profiler wrote them, but for the track of those that overlap. Of several ranks the clocks are made one, and processes and
arrows get numbers of their own, since each rank has a device 0.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import IO, Any

from hta_sql.overlay.counters import SERIES, counter_events
from hta_sql.overlay.critical_path import PathMarking, device_skews
from hta_sql.overlay.lanes import Lanes
from hta_sql.overlay.source import SourceFile, source_of
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.events import Event, Json, microseconds, trace_event
from hta_sql.traces.output import trace_output
from hta_sql.traces.rewriting import rewrite_trace

_WANTED = """
SELECT event_id
FROM events
WHERE
    run = $run AND rank = $rank
    AND ($from_ns IS NULL OR (ts < $until_ns AND ts + coalesce(dur, 0) >= $from_ns))
    AND ($categories IS NULL OR list_contains($categories, category))
"""
_IN_MEMORY = 64 * 2**20
_ARROWS_OF_A_RANK = 2**40
"""Ids of arrows count the launches of a rank: fewer than this."""


@dataclass(frozen=True)
class Wanted:
    """What a slice holds.

    Attributes:
        run: The run.
        ranks: Its ranks.
        window: Start and end since the run's first event [ns]: events that are in it at any time;
            None: all.
        categories: Categories of events, as the table ``events`` says them; None: all. Arrows have
            some, too: ``ac2g``, ``fwdbwd``. Names of processes and threads are there in any case.
        align: Whether what the clocks of several ranks are apart is taken off, where
            ``rank_clocks`` says so.
        critical_path: Whether to mark the critical path, with its arrows.
        counters: Whether to add the tracks of :data:`hta_sql.overlay.counters.SERIES`.
    """

    run: str
    ranks: tuple[int, ...]
    window: tuple[int, int] | None = None
    categories: tuple[str, ...] | None = None
    align: bool = True
    critical_path: bool = False
    counters: bool = False


@dataclass(frozen=True)
class Slice:
    """A slice that was written.

    Attributes:
        path: The file.
        events: Events in it.
        zero_ns: What its clock says when the run begins [ns].
        moved: ``pid``, ``tid`` and start [ns of its clock] of events of the first rank that have
            a track beside their own ─▶ its ``tid``.
    """

    path: str
    events: int
    zero_ns: int
    moved: Mapping[tuple[Any, Any, int], int]


def write_slice(store: TraceStore, wanted: Wanted, path: str | os.PathLike[str]) -> Slice:
    """Write a part of a run as one trace.

    Args:
        store: Store that the traces were read into; they are read again.
        wanted: What to write.
        path: File to write; gzip where it ends in ``.gz``.

    Raises:
        RankError: No such rank in the run.
        ParameterError: A rank has several files.
        TraceError: A trace has changed since it was ingested, or the file cannot be written.
        TraceNotFoundError: A trace is gone.
    """
    parts = [
        _Part(store, wanted, rank, source_of(store, wanted.run, rank)) for rank in wanted.ranks
    ]
    zero = parts[0].source.zero_ns
    clocks = _clocks(store, wanted)
    count = 0
    with trace_output(os.fspath(path)) as out:
        out.write(b'{"traceEvents": [')
        for number, part in enumerate(parts):
            move = None
            if len(parts) > 1:
                shift = zero - part.source.zero_ns - clocks.get(part.rank, 0)
                move = _Move(part.rank, number, shift)
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as lines:
                written = part.write(lines, move)
                lines.seek(0)
                # Each event begins with a comma; the first one of the file must not.
                lines.read(0 if count else 1)
                shutil.copyfileobj(lines, out)
            count += written
        out.write(b'\n], "displayTimeUnit": "ms"}\n')
    return Slice(os.fspath(path), count, zero, parts[0].lanes.starts)


def _clocks(store: TraceStore, wanted: Wanted) -> dict[int, int]:
    """Return how far the clock of each rank is ahead [ns], where that counts."""
    if len(wanted.ranks) < 2 or not wanted.align:
        return {}
    rows = store.run("rank_clocks", runs=[wanted.run], ranks=list(wanted.ranks)).records()
    return {row["rank"]: round(row["clock_offset_ns"]) for row in rows if row["is_applied"]}


@dataclass(frozen=True)
class _Part:
    """What a slice holds of one rank."""

    store: TraceStore
    wanted: Wanted
    rank: int
    source: SourceFile

    def write(self, lines: IO[bytes], move: _Move | None) -> int:
        """Write the events, each behind a comma; returns how many there are."""
        marking = self._path() if self.wanted.critical_path else None
        cut = _Cut(lines, self._mask, self.lanes, marking, move, rank=self.rank)
        count = self.source.event_count
        rewrite_trace(self.source.path, os.devnull, None, cut, expect_events=count)
        for text in self._added(marking):
            event = Event(count, text)
            if self._is_within(event):
                cut.write(event)
        for text in self.lanes.names():
            cut.write(Event(count, text))
        return cut.count

    @cached_property
    def lanes(self) -> Lanes:
        """The tracks of what overlaps."""
        zero = self.source.zero_ns
        return Lanes(self.store, self.wanted.run, self.rank, zero, self._mask)

    @cached_property
    def _mask(self) -> bytearray | None:
        """Mark the events to write by their id; None: all of them."""
        wanted = self.wanted
        if wanted.window is None and wanted.categories is None:
            return None
        start, until = wanted.window or (None, None)
        values = {"run": wanted.run, "rank": self.rank, "from_ns": start, "until_ns": until}
        values["categories"] = None if wanted.categories is None else list(wanted.categories)
        mask = bytearray(self.source.event_count)
        for batch in self.store.sql(_WANTED, values).arrow().to_batches():
            for event_id in batch.column(0).to_pylist():
                mask[event_id] = 1
        return mask

    def _path(self) -> PathMarking | None:
        from hta_sql.critical_path import critical_path  # noqa: PLC0415 - pandas and numpy

        graph = critical_path(
            self.store, self.rank, self.wanted.run, include_last_profiler_step=True
        )
        if graph is None or not graph.critical_path_nodes:
            return None
        edges = graph.critical_path_edges
        skews = device_skews(self.store, graph.run, graph.rank)
        return PathMarking(graph, edges, self.source.zero_ns, skews, only_critical=False)

    def _added(self, marking: PathMarking | None) -> Iterator[bytes]:
        if marking:
            yield from marking.arrows()
        if self.wanted.counters:
            scope = {"runs": [self.wanted.run], "ranks": [self.rank]}
            whole = scope | {"include_last_profiler_step": True}
            yield from counter_events(self.store, tuple(SERIES), self.source.zero_ns, whole)()

    def _is_within(self, event: Event) -> bool:
        if self.wanted.window is None:
            return True
        start, until = self.wanted.window
        return start <= _ns(event.member("ts")) - self.source.zero_ns < until


class _Cut:
    """Writes one event after the other; where the reader starts again, so does this."""

    def __init__(
        self,
        lines: IO[bytes],
        mask: bytearray | None,
        lanes: Lanes,
        marking: PathMarking | None,
        move: _Move | None,
        *,
        rank: int,
    ) -> None:
        self.count = 0
        self._lines, self._mask, self._marking, self._move = lines, mask, marking, move
        self._lanes, self._rank = lanes, rank
        self._last = -1

    def __call__(self, event: Event) -> None:
        if event.event_id <= self._last:
            self._lines.seek(0)
            self._lines.truncate()
            self.count = 0
        self._last = event.event_id
        is_arrow = event.get("ph") in {"s", "t", "f"}
        event = self._lanes(event, _ns(event.member("ts")) if is_arrow else None)
        marked = self._marking(event) if self._marking else None
        if self._mask and not self._mask[event.event_id] and event.get("ph") != "M":
            return
        self.write(Event(event.event_id, marked) if marked and marked != event.text else event)
        if event.get("name") == "process_labels":
            self._name(event)

    def _name(self, labels: Event) -> None:
        """Name a process by its labels, ``GPU 3``: viewers show names, and all have that of the program.

        At the same time, since of several names the last one counts.
        """
        args = labels.get("args")
        told = args.get("labels") if isinstance(args, dict) else None
        if told:
            name = told if self._move else f"rank {self._rank}: {told}"
            text = labels.replace(name="process_name", args={"name": name})
            self.write(Event(labels.event_id, text))

    def write(self, event: Event) -> None:
        """Write an event as it stands, where no other rank is beside it."""
        for text in self._move(event) if self._move else (event.text,):
            self._lines.write(b",\n" + text)
            self.count += 1


@dataclass
class _Move:
    """Puts the events of a rank beside those of others."""

    rank: int
    number: int
    shift_ns: int

    def __post_init__(self) -> None:
        self._pids: dict[Any, int] = {}

    def __call__(self, event: Event) -> Iterable[bytes]:
        """Return the event, behind the name of its process where that is new."""
        fields: dict[str, Any] = {}
        if "ts" in event and self.shift_ns:
            fields["ts"] = Json(microseconds(_ns(event.member("ts")) + self.shift_ns))
        if isinstance(event.get("id"), int) and event.get("ph") in ("s", "t", "f"):
            fields["id"] = event.get("id") + self.number * _ARROWS_OF_A_RANK
        pid = event.get("pid")
        is_new = isinstance(pid, (int, str)) and pid not in self._pids
        if isinstance(pid, (int, str)):
            fields["pid"] = self._pids.setdefault(pid, self.number * 1000 + len(self._pids) + 1)
        if event.get("ph") == "M":
            fields |= self._told(event)
        if is_new:
            name = {"name": f"rank {self.rank}: {pid}"}
            yield trace_event("M", "process_name", ts=0, pid=fields["pid"], tid=0, args=name)
        yield event.replace(**fields) if fields else event.text

    def _told(self, event: Event) -> dict[str, Any]:
        """Return what an event about a process says of it among those of other ranks."""
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        match event.get("name"):
            case "process_name":
                return {"args": {"name": f"rank {self.rank}: {args.get('name')}"}}
            case "process_sort_index":
                return {"args": {"sort_index": self.number * 1000 + len(self._pids)}}
        return {}


def _ns(text: str) -> int:
    """Read a time of a trace, in microseconds, with every digit."""
    return round(Decimal(text.strip('"')) * 1000)
