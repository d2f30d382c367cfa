"""HTA's critical path in plain Python: its length for a window, with HTA's quirks as switches.

Q51: host events of zero duration are excluded, with their launches. Q52: six call names have zero
weight, and no copy leads back to its call. burst: a launch bounds a kernel only if the queue is
empty at both ends, and gaps of 1,500 µs bound nothing. threads: all calls that take the lock are
serialized, and a backward thread is joined to a forward thread by names alone. graph: only one
kernel of a launch is in the graph. rows: a host thread that has an event with a stream is excluded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

from tests.parity.plain_order import Bound, in_order, walked
from tests.parity.plain_trace import Causes, Job, Row, scoped

LOCKING = {"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"}
BLOCKING = {
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemcpyAsync",
}
LAUNCHING = {
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemsetAsync",
    "hipMemcpyAsync",
    "hipMemcpyWithStream",
}
WAITING = re.compile(r"synchronize|event_?query|memcpy$", re.IGNORECASE)
PINNING = re.compile(r"host_?m?alloc|malloc_?host", re.IGNORECASE)
FAR = 1500
"""Length from which a gap on a stream no longer bounds the next operation in HTA [µs]."""


Thread = tuple[Any, Any]

Lanes = dict[Thread, Thread]
"""Thread of a backward pass ─▶ thread of its forward pass."""


class Window(NamedTuple):
    """The rows of a rank from which the graph of a path is built."""

    host: list[Row]
    device: list[Row]
    launches: dict[int, Row]
    """Device event ─▶ row of its launch."""
    rows: dict[int, Row]
    unit: int


def window(job: Job, rank: int, causes: Causes, annotation: str, instance: int) -> Window | None:
    """Select the rows of a window, or return None if there is no such instance."""
    rows = scoped(job, causes, whole=False)[rank]
    first, last = None, None
    if annotation:
        spans = [
            row
            for row in rows
            if annotation in row.name and ("Q50" in causes or row.cat != "gpu_user_annotation")
        ]
        if instance >= len(spans):
            return None
        first, last = spans[instance].ts, spans[instance].end
    least = 1 if "Q51" in causes else 0

    def inside(row: Row) -> bool:
        lasts = row.dur > 0 if least else True
        return lasts and (first is None or first <= row.ts <= last)

    host = [row for row in rows if not row.is_device and inside(row)]
    by_event = {row.event: row for row in rows}
    if "graph" in causes:
        linked = {row.partner: row for row in rows if not row.is_device and row.partner > 0}
    else:
        calls = {r.correlation: r for r in rows if not r.is_launched and r.correlation > 0}
        linked = {
            r.event: calls[r.correlation] for r in rows if r.is_launched and r.correlation in calls
        }
    device = [
        row for row in rows if row.is_device and row.event in linked and inside(linked[row.event])
    ]
    return Window(host, device, linked, by_event, job.unit)


class Path:
    """The graph of a window, in which the longest path is searched."""

    def __init__(self, chosen: Window, causes: Causes, lanes: Lanes) -> None:
        self.window, self.causes, self.lanes = chosen, causes, lanes
        self.edges: dict[tuple[Bound, Bound], tuple[Any, str]] = {}
        operators = {"cpu_op", "cuda_runtime", "cuda_driver"}
        if "calls" not in causes:
            operators |= {"mtia_runtime"}
        self.nodes = {row.event: row for row in chosen.host if row.cat in operators}
        self.nodes |= {
            row.event: row for row in chosen.device if row.partner >= 0 and row.cat != "cuda_sync"
        }
        self.copies = {
            chosen.launches[row.event].event: row
            for row in chosen.device
            if row.cat == "gpu_memcpy" and row.end <= chosen.launches[row.event].end
        }
        if "threads" in causes:
            self._locks()
        else:
            self._overlapping_calls()
            self._handovers()
        self._threads()
        self._streams()

    def time(self, bound: Bound) -> Any:
        """Return the time of a start or an end."""
        row = self.nodes[bound[0]]
        return row.ts if bound[1] else row.end

    def link(self, a: Bound, b: Bound, kind: str, *, free: bool = False) -> None:
        """Add an edge; dependencies and synchronizations have zero weight."""
        nothing = free or kind in {"dependency", "sync"}
        self.edges[a, b] = (0 if nothing else self.time(b) - self.time(a), kind)

    def blocks(self, row: Row) -> bool:
        """Return whether the host waits at the end of a call."""
        if "Q52" in self.causes:
            return row.name in BLOCKING
        return (row.cat != "cpu_op" and bool(WAITING.search(row.name))) or row.event in self.copies

    def ordered(self) -> list[Bound]:
        """Return all starts and ends, sorted by time and event."""
        bounds = [(event, side) for event in self.nodes for side in (True, False)]
        return sorted(bounds, key=lambda b: (self.time(b), b[0], not b[1]))

    def _locks(self) -> None:
        opened: list[Bound] = []
        last: Bound | None = None
        for bound in self.ordered():
            if self.nodes[bound[0]].name not in LOCKING:
                continue
            if bound[1]:
                opened.append(bound)
            else:
                while opened:
                    start = opened.pop()
                    same = start[0] == bound[0]
                    kind = "operator" if same else "dependency"
                    free = "Q52" not in self.causes and self.blocks(self.nodes[bound[0]])
                    self.link(start, bound, kind, free=free)
                if last is not None and not last[1]:
                    self.link(last, bound, "dependency")
            last = bound

    def _overlapping_calls(self) -> None:
        launching = {launch.event for launch in self.window.launches.values()}
        calls = [
            self.nodes[event]
            for event, start in self.ordered()
            if not start
            and self.nodes[event].cat != "cpu_op"
            and (event in launching or PINNING.search(self.nodes[event].name))
            and not self.nodes[event].is_device
        ]
        for before, call in pairwise(calls):
            if before.tid != call.tid and call.ts < before.end:
                self.link((before.event, False), (call.event, False), "dependency")

    def _handovers(self) -> None:
        members = {*self.lanes, *self.lanes.values()}
        lanes: dict[Thread, list[Row]] = defaultdict(list)
        for row in self.nodes.values():
            thread = (row.pid, row.tid)
            if not row.is_device and thread in members:
                lanes[self.lanes.get(thread, thread)].append(row)
        for rows in lanes.values():
            depth, last = 0, None
            for bound in in_order(rows):
                row = self.nodes[bound[0]]
                if last is not None and depth == 0:
                    before = self.nodes[last[0]]
                    if (before.pid, before.tid) != (row.pid, row.tid):
                        self.link(last, bound, "dependency")
                depth += 1 if bound[1] else -1
                last = bound

    def _shares(self, a: Bound, b: Bound) -> bool:
        if "threads" not in self.causes:
            return False
        names = (self.nodes[a[0]].name, self.nodes[b[0]].name)
        return names[0] in LOCKING and names[1] in LOCKING and (a[1] or not b[1])

    def _threads(self) -> None:
        threads: dict[tuple[Any, Any], list[Row]] = defaultdict(list)
        merged = self._merged_threads()
        for row in self.window.host:
            threads[row.pid, merged.get(row.tid, row.tid)].append(row)
        if "rows" in self.causes:
            for row in self.window.device:
                threads.pop((row.pid, merged.get(row.tid, row.tid)), None)
        for rows in threads.values():
            last: Bound | None = None
            depth = 0
            for bound in walked(rows) if "Q51" in self.causes else in_order(rows):
                if bound[0] not in self.nodes:
                    continue
                if last is not None and not self._shares(last, bound):
                    kind = "dependency" if bound[1] and depth == 0 else "operator"
                    free = not bound[1] and self.blocks(self.nodes[bound[0]])
                    self.link(last, bound, kind, free=free)
                depth += 1 if bound[1] else -1
                last = bound

    def _merged_threads(self) -> dict[Any, Any]:
        if "threads" not in self.causes:
            return {}
        found = [
            {
                row.tid
                for row in self.window.host
                if word in row.name and row.cat in {"cpu_op", "user_annotation"}
            }
            for word in ("autograd", "forward")
        ]
        backward, forward = found
        if len(backward) == len(forward) == 1 and backward != forward:
            return {backward.pop(): forward.pop()}
        return {}

    def _streams(self) -> None:
        queue = self._queue()
        last: dict[int, Bound] = {}
        streams: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(
            (r for r in [*self.window.device, *self._records()]),
            key=lambda r: r.end if r.cat == "cuda_sync" else r.ts,
        ):
            if row.cat == "cuda_sync":
                self._wait(row, last)
                continue
            if row.event not in self.nodes:
                continue
            start, end = (row.event, True), (row.event, False)
            self.link(start, end, "operator")
            launch = self.window.launches[row.event]
            before = last.get(row.stream)
            if "Q55" not in self.causes:
                before = self._before(row, streams[row.stream])
                streams[row.stream].append(row)
            idle = before is None or self.time(before) < launch.ts
            empty = queue.get(launch.event) == 1 and queue.get(row.event) == 0
            known = "Q55" in self.causes or launch.ts <= row.ts
            if idle and known and (empty or "burst" not in self.causes):
                if launch.event in self.nodes:
                    self.link((launch.event, True), start, "launch")
            elif before is not None and (
                "burst" not in self.causes or row.ts - self.time(before) < FAR * self.window.unit
            ):
                self.link(before, start, "gap")
            if "Q52" not in self.causes and self.copies.get(launch.event) is row:
                self.link(end, (launch.event, False), "sync")
            last[row.stream] = end

    @staticmethod
    def _before(row: Row, earlier: list[Row]) -> Bound | None:
        """Return the last end on the stream before a row starts.

        If the previous operation is still running, return its start instead.
        """
        if earlier and earlier[-1].end > row.ts:
            return earlier[-1].event, True
        ended = max(
            (op for op in earlier[-64:] if op.end <= row.ts), key=lambda op: op.end, default=None
        )
        return None if ended is None else (ended.event, False)

    def _records(self) -> list[Row]:
        return [row for row in self.window.host if row.cat == "cuda_sync" and row.partner >= 0]

    def _wait(self, row: Row, last: dict[int, Bound]) -> None:
        """Link the operations that a call waited for, on one or all streams, to the call's end."""
        if row.name == "Event Sync":
            source = self._recorded(row)
            if source is not None and source.event in self.nodes and row.partner in self.nodes:
                self.link((source.event, False), (row.partner, False), "sync")
            return
        streams = {"Stream Sync": [row.stream], "Context Sync": list(last)}.get(row.name, [])
        for stream in streams:
            if stream in last and row.partner in self.nodes:
                self.link(last[stream], (row.partner, False), "sync")

    def _recorded(self, wait: Row) -> Row | None:
        """Return the last operation launched into the stream before the event was recorded."""
        records = [
            row
            for row in self.window.rows.values()
            if not row.is_device and row.correlation == wait.wait_on_record and not row.is_launched
        ]
        ops = [
            (launch.ts, event)
            for event, launch in self.window.launches.items()
            if records
            and launch.name in LAUNCHING
            and event in self.window.rows
            and self.window.rows[event].stream == wait.wait_on_stream
            and launch.ts <= records[0].ts
        ]
        return self.window.rows[max(ops)[1]] if ops else None

    def _queue(self) -> dict[int, int]:
        moves = []
        for row in self.window.rows.values():
            launch = self.window.launches.get(row.event) if row.is_device else None
            if launch is not None and launch.name in LAUNCHING:
                moves += [
                    (launch.ts, 0, launch.event, row.stream),
                    (row.ts, 1, row.event, row.stream),
                ]
        lengths: dict[int, int] = defaultdict(int)
        found = {}
        for _, leaves, event, stream in sorted(moves):
            lengths[stream] += -1 if leaves else 1
            found[event] = lengths[stream]
        return found

    def length(self) -> float:
        """Return the time on the longest path [µs].

        Edges that go back in time count as 0 while the path is chosen. With Q55, their negative
        time is still subtracted from the length of the path.
        """
        following: dict[Bound, list[tuple[Bound, Any, Any]]] = defaultdict(list)
        degree: dict[Bound, int] = defaultdict(int)
        for (a, b), (weight, _) in self.edges.items():
            chosen = 0 if weight <= -self.window.unit or "Q55" not in self.causes else weight
            chosen = max(chosen, weight)
            following[a].append((b, chosen, weight if "Q55" in self.causes else chosen))
            degree[b] += 1
            degree[a] += 0
        best: dict[Bound, tuple[Any, Any]] = dict.fromkeys(degree, (0, 0))
        ready = [node for node, count in degree.items() if not count]
        for node in ready:
            for after, chosen, weight in following[node]:
                reached = (best[node][0] + chosen, best[node][1] + weight)
                if reached[0] > best[after][0]:
                    best[after] = reached
                degree[after] -= 1
                if not degree[after]:
                    ready.append(after)
        assert len(ready) == len(best), "a cycle"
        longest = max(best.values(), key=lambda found: found[0], default=(0, 0))
        return float(longest[1]) / self.window.unit
