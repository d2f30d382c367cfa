"""Assign overlapping events that do not nest to additional tracks.

Viewers draw a track as a call stack and drop events that do not nest. Perfetto drops each kernel
that begins before the previous one has ended, which programmatic dependent launches make common.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hta_sql.library.sql_files import query_sql
from hta_sql.traces.events import Event, trace_event

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore


class Lanes:
    """Assignment of a rank's events to tracks.

    Args:
        store: Store of the rank.
        run: Run of the rank.
        rank: The rank.
        zero_ns: Start of the run on the file's clock [ns].
        mask: Whether each event is shown, by ``event_id``; None: all events.
    """

    def __init__(
        self, store: TraceStore, run: str, rank: int, zero_ns: int, mask: bytearray | None
    ) -> None:
        rows = store.sql(query_sql("events", "by_track"), {"run": run, "rank": rank}).rows()
        shown = [row for row in rows if mask is None or mask[row[4]]]
        self._last = {pid: tid for pid, tid, *_ in rows}
        self._moved: dict[int, int] = {}
        self._names: list[tuple[int, int, int, bool]] = []
        self.starts: dict[tuple[Any, Any, int], int] = {}
        """Track and start (file's clock [ns]) of a moved event ─▶ its new thread."""
        for (pid, tid), events in groupby(shown, key=lambda row: (row[0], row[1])):
            self._spread(pid, tid, zero_ns, list(events))

    def _spread(self, pid: int, tid: int, zero_ns: int, events: list[tuple[Any, ...]]) -> None:
        lanes: list[tuple[int, list[int]]] = [(tid, [])]
        for _, _, ts, until, event_id, is_on_device in events:
            lane = next((lane for lane, ends in lanes if _fits(ends, ts, until)), None)
            if lane is None:
                lane = self._last[pid] = self._last[pid] + 1
                lanes.append((lane, [until]))
                self._names.append((pid, tid, lane, is_on_device))
            if lane != tid:
                self._moved[event_id] = lane
                self.starts[pid, tid, ts + zero_ns] = lane

    def __call__(self, event: Event, ts_ns: int | None) -> Event:
        """Move an event, or the arrow end that starts with it at ``ts_ns``, to its track."""
        lane = self._moved.get(event.event_id)
        if lane is None and event.get("ph") in {"s", "t", "f"} and ts_ns is not None:
            lane = self.starts.get((event.get("pid"), event.get("tid"), ts_ns))
        return event if lane is None else event.changed(tid=lane)

    def names(self) -> Iterator[bytes]:
        """Yield the metadata events of new tracks: name, and sort index below the old track."""
        for pid, tid, lane, is_on_device in self._names:
            about = {"name": f"{'stream' if is_on_device else 'thread'} {tid}: overlapping events"}
            where = {"ts": 0, "pid": pid, "tid": lane}
            yield trace_event("M", "thread_name", **where, args=about)
            yield trace_event("M", "thread_sort_index", **where, args={"sort_index": tid})


def _fits(ends: list[int], ts: int, until: int) -> bool:
    """Push an event onto the stack of open event ends if it nests; return whether it does."""
    while ends and ends[-1] <= ts:
        ends.pop()
    fits = not ends or until <= ends[-1]
    if fits:
        ends.append(until)
    return fits
