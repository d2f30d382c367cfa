"""Events as the analyses see them, derived one at a time from the events in the files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.traces import Job

HOST = {
    "cpu_op": "cpu_ops",
    "user_annotation": "annotations",
    "cuda_runtime": "runtime_calls",
    "cuda_driver": "runtime_calls",
    "python_function": "python_calls",
}
DEVICE = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset", "cuda_sync": "sync"}
A_SECOND = 1_000_000_000


@dataclass(eq=False)
class Item:
    """A complete event of a trace."""

    run: str
    rank: int
    id: int
    cat: str
    name: str
    raw_thread: tuple[Any, Any]
    ts: int
    dur: int
    args: dict[str, Any]
    parent: Item | None = None
    launch: Item | None = None
    step: int | None = None
    in_last: bool = False
    suspect: bool = False
    kernels: list[Item] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Return the end of the event [ns]."""
        return self.ts + self.dur

    @property
    def thread(self) -> tuple[int | None, int | None]:
        """Return process and thread, each None if it is not a number."""
        pid, tid = self.raw_thread
        return (pid if isinstance(pid, int) else None, tid if isinstance(tid, int) else None)

    @property
    def place(self) -> tuple[str, int, int | None, int | None]:
        """Return run, rank, device and stream."""
        pid, tid = self.thread
        return self.run, self.rank, self.args.get("device", pid), self.args.get("stream", tid)

    @property
    def kind(self) -> str:
        """Return the kind of a device operation."""
        return DEVICE[self.cat]

    @property
    def klass(self) -> str:
        """Return the class of a device operation."""
        if self.cat == "cuda_sync":
            return "sync"
        if self.cat != "kernel" or self.name.startswith("Copy"):
            return "memory"
        return "communication" if "nccl" in self.name else "computation"

    @property
    def is_step(self) -> bool:
        """Return whether the event is a profiler step of the host."""
        return self.cat == "user_annotation" and self.name.startswith("ProfilerStep")

    def above(self) -> Iterator[Item]:
        """Yield the ancestors of the event, innermost first."""
        item = self.parent
        while item:
            yield item
            item = item.parent

    def around(self, cat: str) -> list[Item]:
        """Return the ancestors of a category, innermost first, except steps."""
        return [item for item in self.above() if item.cat == cat and not item.is_step]


@dataclass
class Scope:
    """Selection of runs, ranks and steps."""

    runs: list[str] | None = None
    ranks: list[int] | None = None
    steps: list[int] | None = None
    include_last_profiler_step: bool = False

    def __contains__(self, item: Item) -> bool:
        """Return whether the run, rank and step of an event are selected."""
        return (
            self.has_rank(item)
            and (self.steps is None or item.step in self.steps)
            and (self.include_last_profiler_step or not item.in_last)
        )

    def has_rank(self, item: Item) -> bool:
        """Return whether the run and rank of an event are selected."""
        return (self.runs is None or item.run in self.runs) and (
            self.ranks is None or item.rank in self.ranks
        )


class World:
    """All events of a job with their links."""

    def __init__(self, job: Job) -> None:
        self.items: list[Item] = []
        self.host: list[Item] = []
        self.gpu: list[Item] = []
        self.memory: list[Item] = []
        self.with_steps: set[str] = set()
        for run, ranks in job.items():
            lasting = [e for events in ranks.values() for e in events if e["ph"] == "X"]
            zero = min((e["ts"] for e in lasting), default=0)
            steps = {
                e["name"]
                for events in ranks.values()
                for e in events
                if e["cat"] == "user_annotation" and e["name"].startswith("ProfilerStep")
            }
            if steps:
                self.with_steps.add(run)
            for rank, events in ranks.items():
                items = [_item(run, rank, number, e, zero) for number, e in enumerate(events)]
                self._link(items, len(steps) >= 2)

    def _link(self, events: list[Item], drops_last: bool) -> None:
        items = [item for item in events if item.name != "[memory]"]
        memory = [item for item in events if item.name == "[memory]"]
        self.items += items
        self.memory += memory
        host = [item for item in items if item.cat in HOST]
        gpu = [item for item in items if item.cat in DEVICE]
        self.host += host
        self.gpu += gpu
        _call_tree(host)
        _launches(host, gpu)
        for event in memory:
            around = [
                h for h in host if h.raw_thread == event.raw_thread and h.ts <= event.ts <= h.end
            ]
            event.parent = max(around, key=lambda h: (h.ts, -h.dur, h.id), default=None)
        windows = _step_windows([item for item in host if item.is_step])
        last = max((item.ts for item in host if item.is_step), default=None)
        ends = [item.end for item in items if item.cat == "Trace"]
        recorded = max([*ends, *(item.ts for item in items)]) if ends else None
        for item in events:
            ts = item.launch.ts if item.launch else item.ts
            item.step = next((n for low, high, n in windows if low <= ts < high), None)
            item.in_last = drops_last and last is not None and ts >= last
            item.suspect = item.dur < 0 or (recorded is not None and item.end > recorded + A_SECOND)

    def ops(self, scope: Scope) -> list[Item]:
        """Return device activity in scope."""
        return [g for g in self.gpu if g in scope and not g.suspect and g.klass != "sync"]

    def hosts(self, scope: Scope, *cats: str) -> list[Item]:
        """Return events on host threads in scope."""
        return [h for h in self.host if h in scope and (not cats or h.cat in cats)]


def _item(run: str, rank: int, number: int, event: dict[str, Any], zero: float) -> Item:
    where = event["pid"], event["tid"]
    ts, dur = round((event["ts"] - zero) * 1000), round(event.get("dur", 0) * 1000)
    return Item(run, rank, number, event["cat"], event["name"], where, ts, dur, event["args"])


def _call_tree(host: list[Item]) -> None:
    """Set the parent of each event: the innermost event of its thread that encloses it.

    Of events that start together, the longest is the outermost; ties go to the first in the file.
    """
    done: list[Item] = []
    for item in sorted(host, key=lambda i: (i.ts, -i.dur, i.id)):
        around = [p for p in done if p.raw_thread == item.raw_thread and p.end >= item.end]
        item.parent = around[-1] if around else None
        done.append(item)


def _launches(host: list[Item], gpu: list[Item]) -> None:
    for op in gpu:
        calls = [
            h
            for h in host
            if h.cat in ("cuda_runtime", "cuda_driver")
            and op.args.get("correlation", "none") == h.args["correlation"]
        ]
        op.launch = min(calls, key=lambda h: (h.ts, -h.dur, h.id), default=None)
        if op.launch:
            op.launch.kernels.append(op)


def _step_windows(steps: list[Item]) -> list[tuple[int, int, int]]:
    ordered = sorted(steps, key=lambda s: (s.ts, s.id))
    starts = [s.ts for s in ordered[1:]]
    return [
        (s.ts, min([s.end, *starts[n : n + 1]]), int(re.findall(r"\d+", s.name)[0]))
        for n, s in enumerate(ordered)
    ]


def as_json(value: Any) -> str:
    """Format a value as JSON in the style of the engine."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
