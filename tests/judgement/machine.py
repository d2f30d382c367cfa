"""Simulation of the programs of all ranks, with host threads, streams and collectives.

An operation starts when it is launched, its stream is free, and the operations that it waits for
are complete. A completed operation releases the operations that wait for it, so no global event
order is needed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count


@dataclass(eq=False)
class Meeting:
    """A collective, or a transfer between two ranks."""

    kind: str
    name: str
    group: tuple[int, ...]
    number: int
    transfer_ns: int
    elements: int
    src: int | None = None
    dst: int | None = None
    parts: list[Item] = field(default_factory=list)


@dataclass(eq=False)
class Item:
    """A kernel on a stream, which may be a rank's part in a collective or transfer."""

    rank: int
    name: str
    stream: int
    duration_ns: int
    grid: int = 64
    meeting: Meeting | None = None
    awaited: list[Item] = field(default_factory=list)
    start: int = -1
    end: int = -1
    open: int = 0
    ready: int = 0
    next: list[Item] = field(default_factory=list)
    resumes: bool = False


@dataclass(frozen=True)
class Work:
    """Instruction: the host is busy for some time."""

    ns: int


@dataclass(frozen=True)
class Open:
    """Instruction: the host opens an event."""

    category: str
    name: str
    meeting: Meeting | None = None


@dataclass(frozen=True)
class Close:
    """Instruction: the host closes its innermost open event."""


@dataclass(frozen=True)
class Launch:
    """Instruction: the host launches an operation."""

    item: Item


@dataclass(frozen=True)
class Sync:
    """Instruction: the host waits until an operation ends."""

    item: Item


Instruction = Work | Open | Close | Launch | Sync


@dataclass
class Span:
    """An event on the host."""

    category: str
    name: str
    start: int
    end: int = -1
    meeting: Meeting | None = None
    launched: Item | None = None


CALL_NS = 3_000
START_NS = 1_500
SYNC_NS = 6_000


class Machine:
    """Simulator of all ranks of a job.

    Args:
        programs: Host instructions of each rank.

    Attributes:
        spans: Host events of each rank.
        items: Device operations of each rank.
    """

    def __init__(self, programs: list[list[Instruction]]) -> None:
        self.programs = programs
        self.spans: list[list[Span]] = [[] for _ in programs]
        self.items: list[list[Item]] = [[] for _ in programs]
        self._at = [0] * len(programs)
        self._now = [1_000_000] * len(programs)
        self._around: list[list[Span]] = [[] for _ in programs]
        self._tails: dict[tuple[int, int], Item] = {}
        self._done: deque[Item] = deque()

    def run(self) -> None:
        """Run all programs to their end."""
        for rank in range(len(self.programs)):
            self._host(rank)
        while self._done:
            item = self._done.popleft()
            for waiting in item.next:
                self._release(waiting, item.end)
            if item.resumes:
                self._finish_sync(item)
                self._host(item.rank)

    def _host(self, rank: int) -> None:
        program, spans, around = self.programs[rank], self.spans[rank], self._around[rank]
        while self._at[rank] < len(program):
            does = program[self._at[rank]]
            self._at[rank] += 1
            if isinstance(does, Work):
                self._now[rank] += does.ns
            elif isinstance(does, Open):
                around.append(Span(does.category, does.name, self._now[rank], meeting=does.meeting))
                spans.append(around[-1])
                self._now[rank] += 500
            elif isinstance(does, Close):
                self._now[rank] += 500
                around.pop().end = self._now[rank]
            elif isinstance(does, Launch):
                self._launch(does.item)
            else:
                spans.append(Span("cuda_runtime", "cudaStreamSynchronize", self._now[rank]))
                if does.item.end < 0:
                    does.item.resumes = True
                    return
                self._finish_sync(does.item)

    def _finish_sync(self, item: Item) -> None:
        call = self.spans[item.rank][-1]
        self._now[item.rank] = max(call.start + CALL_NS, item.end + SYNC_NS)
        call.end = self._now[item.rank]

    def _launch(self, item: Item) -> None:
        rank, start = item.rank, self._now[item.rank]
        self._now[rank] += CALL_NS
        call = Span("cuda_runtime", "cudaLaunchKernel", start, self._now[rank], launched=item)
        self.spans[rank].append(call)
        self.items[rank].append(item)
        item.ready = self._now[rank] + START_NS
        before = self._tails.get((rank, item.stream))
        self._tails[rank, item.stream] = item
        item.open = 1
        for other in (*item.awaited, *((before,) if before else ())):
            if other.end < 0:
                other.next.append(item)
                item.open += 1
            else:
                item.ready = max(item.ready, other.end + 1_000)
        self._release(item, 0)

    def _release(self, item: Item, at: int) -> None:
        item.ready = max(item.ready, at + 1_000)
        item.open -= 1
        if item.open:
            return
        item.start = item.ready
        meeting = item.meeting
        if meeting is None:
            item.end = item.start + item.duration_ns
            self._done.append(item)
            return
        meeting.parts.append(item)
        if len(meeting.parts) == len(meeting.group):
            through = max(part.start for part in meeting.parts) + meeting.transfer_ns
            for part in meeting.parts:
                # For a collective, duration_ns is the rank's delay when it leaves the collective.
                part.end = through + part.duration_ns
                self._done.append(part)


class Numbers:
    """Numbers collectives, so that the n-th collective of a group is the same on all ranks."""

    def __init__(self) -> None:
        self._meetings: dict[tuple[object, ...], Meeting] = {}
        self._counts: dict[tuple[object, ...], count[int]] = defaultdict(count)

    def meeting(self, rank: int, made: Meeting) -> Meeting:
        """Return the collective to which a rank's next operation in a group belongs."""
        key = (made.kind, made.group, made.src, made.dst)
        made.number = next(self._counts[rank, *key])
        return self._meetings.setdefault((*key, made.number), made)
