"""Write part of a job as one trace for a viewer: some ranks, a time window, some categories.

Events stay as the profiler wrote them, except that overlapping events move to other tracks. With
several ranks, clocks are aligned, and processes and arrows get unique numbers, because each rank
has a device 0.
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

from hta_sql.library.sql_files import query_sql
from hta_sql.overlay.counters import SERIES, counter_events
from hta_sql.overlay.critical_path import PathMarking, device_skews
from hta_sql.overlay.lanes import Lanes
from hta_sql.overlay.source import SourceFile, source_of
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.events import Event, Json, microseconds, trace_event
from hta_sql.traces.output import trace_output
from hta_sql.traces.rewriting import rewrite_trace

_IN_MEMORY = 64 * 2**20
_ARROWS_OF_A_RANK = 2**40
"""Upper bound of a rank's arrow ids, which count its launches."""


@dataclass(frozen=True)
class Wanted:
    """Selection of a slice.

    Attributes:
        run: The run.
        ranks: Ranks of the run.
        window: Start and end since the run's first event [ns]; events that overlap the window are
            included. None: all.
        categories: Categories of events, as in the table ``events``; None: all. Arrows also have
            categories: ``ac2g``, ``fwdbwd``. Names of processes and threads are always included.
        align: Whether to subtract the clock offsets of several ranks if ``rank_clocks`` determines
            them.
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
    """A written slice.

    Attributes:
        path: Path of the file.
        events: Number of events.
        zero_ns: Start of the run on the slice's clock [ns].
        moved: ``pid``, ``tid`` and start [ns on the slice's clock] of each moved event of the first
            rank ─▶ ``tid`` of its new track.
    """

    path: str
    events: int
    zero_ns: int
    moved: Mapping[tuple[Any, Any, int], int]


def write_slice(store: TraceStore, wanted: Wanted, path: str | os.PathLike[str]) -> Slice:
    """Write part of a run as one trace.

    Args:
        store: Store that the traces were ingested into; the trace files are read again.
        wanted: Selection to write.
        path: Output file, compressed with gzip if the name ends in ``.gz``.

    Raises:
        RankError: The run has no such rank.
        ParameterError: A rank has several files.
        TraceError: A trace has changed since the ingest, or the file cannot be written.
        TraceNotFoundError: A trace no longer exists.
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
                # Each event begins with a comma; the first event of the file must not.
                lines.read(0 if count else 1)
                shutil.copyfileobj(lines, out)
            count += written
        out.write(b'\n], "displayTimeUnit": "ms"}\n')
    return Slice(os.fspath(path), count, zero, parts[0].lanes.starts)


def _clocks(store: TraceStore, wanted: Wanted) -> dict[int, int]:
    """Return the clock offset of each rank whose clock is aligned [ns]."""
    if len(wanted.ranks) < 2 or not wanted.align:
        return {}
    rows = store.run("rank_clocks", runs=[wanted.run], ranks=list(wanted.ranks)).records()
    return {row["rank"]: round(row["clock_offset_ns"]) for row in rows if row["is_applied"]}


@dataclass(frozen=True)
class _Part:
    """The part of a slice that comes from one rank."""

    store: TraceStore
    wanted: Wanted
    rank: int
    source: SourceFile

    def write(self, lines: IO[bytes], move: _Move | None) -> int:
        """Write the events, each preceded by a comma; return the event count."""
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
        """The tracks of overlapping events."""
        zero = self.source.zero_ns
        return Lanes(self.store, self.wanted.run, self.rank, zero, self._mask)

    @cached_property
    def _mask(self) -> bytearray | None:
        """Mask of the events to write, by id; None: all."""
        wanted = self.wanted
        if wanted.window is None and wanted.categories is None:
            return None
        start, until = wanted.window or (None, None)
        values = {"run": wanted.run, "rank": self.rank, "from_ns": start, "until_ns": until}
        values["categories"] = None if wanted.categories is None else list(wanted.categories)
        mask = bytearray(self.source.event_count)
        for batch in self.store.sql(query_sql("events", "within"), values).arrow().to_batches():
            for event_id in batch.column(0).to_pylist():
                mask[event_id] = 1
        return mask

    def _path(self) -> PathMarking | None:
        from hta_sql.critical_path import critical_path  # noqa: PLC0415 - imports pandas and numpy

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
    """Writes events in sequence, and restarts if the reader restarts."""

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
        """Write a process name from its labels, such as ``GPU 3``.

        Viewers show only the process name, which the profiler sets to the program's name for all
        processes. If a process has several names, the last one counts, so the event keeps the time
        of the labels.
        """
        args = labels.get("args")
        label_text = args.get("labels") if isinstance(args, dict) else None
        if label_text:
            name = label_text if self._move else f"rank {self._rank}: {label_text}"
            text = labels.replace(name="process_name", args={"name": name})
            self.write(Event(labels.event_id, text))

    def write(self, event: Event) -> None:
        """Write an event, moved if the trace has several ranks."""
        for text in self._move(event) if self._move else (event.text,):
            self._lines.write(b",\n" + text)
            self.count += 1


@dataclass
class _Move:
    """Maps the events of a rank into a trace of several ranks."""

    rank: int
    number: int
    shift_ns: int

    def __post_init__(self) -> None:
        self._pids: dict[Any, int] = {}

    def __call__(self, event: Event) -> Iterable[bytes]:
        """Yield the mapped event, preceded by the name of its process if that is new."""
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
            fields |= self._process_fields(event)
        if is_new:
            name = {"name": f"rank {self.rank}: {pid}"}
            yield trace_event("M", "process_name", ts=0, pid=fields["pid"], tid=0, args=name)
        yield event.replace(**fields) if fields else event.text

    def _process_fields(self, event: Event) -> dict[str, Any]:
        """Return the changed fields of a process metadata event in a trace of several ranks."""
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        match event.get("name"):
            case "process_name":
                return {"args": {"name": f"rank {self.rank}: {args.get('name')}"}}
            case "process_sort_index":
                return {"args": {"sort_index": self.number * 1000 + len(self._pids)}}
        return {}


def _ns(text: str) -> int:
    """Convert a trace timestamp from microseconds to nanoseconds without rounding errors."""
    return round(Decimal(text.strip('"')) * 1000)
