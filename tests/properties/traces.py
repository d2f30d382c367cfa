"""Random small traces with edge cases: ties, zero durations, overlaps and missing ends."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hta_sql
from hta_sql.store.catalog.materialize import materialize
from tests.shared_stores import made_once

Event = dict[str, Any]
Job = dict[str, dict[int, list[Event]]]
"""Run ─▶ rank ─▶ events."""

BASE_NS = 1_700_000_000_000_000_000
OPERATORS = ("aten::mm", "aten::add", "aten::a|b", 'näme "q" -> z', "autograd::x", "")
ANNOTATIONS = ("## fwd ##", "others", "a / b", 'q"uote', "## backward ##")
CALLS = ("cudaLaunchKernel", "hipExtModuleLaunchKernel", "cudaGraphLaunch", "cudaStreamWaitEvent")
KERNELS = (
    *("gemm<int>(a)", "elt | x", 'k"->"', "gemm<float>(a)", "CopyHostToDevice"),
    *("ncclDevKernel_AllReduce", "ncclDevKernel_AllGather"),
)
COPIES = ("Memcpy HtoD (a -> b)", "Memcpy DtoD (a)", "MemcpyDtoH", "Memcpy ?")
THREADS: tuple[tuple[Any, Any], ...] = ((100, 1), (100, 2), (101, 1), ("worker", "a"))


def random_job(seed: int) -> Job:
    """Return two runs of three ranks; some ranks have no steps, no device or no events."""
    rng = Random(seed)
    return {
        run: {rank: RankTrace(rng, with_steps).events for rank in (0, 1, 3)}
        for run, with_steps in (("b.run-2", rng.random() < 0.8), ("a", rng.random() < 0.5))
    }


class RankTrace:
    """The random events of one rank."""

    def __init__(self, rng: Random, with_steps: bool) -> None:
        self.rng = rng
        self.events: list[Event] = []
        self.correlation = 0
        if rng.random() < 0.05:
            return
        if with_steps and rng.random() < 0.9:
            self._steps()
        for _ in range(rng.randrange(40)):
            self._host_event()
        self._twins_and_nests()
        for _ in range(rng.randrange(25)):
            self._launch()
        for _ in range(rng.randrange(8)):
            self._device_event(rng.choice([None, 9_000 + rng.randrange(9)]))
        for _ in range(rng.randrange(8)):
            name = rng.choice((*ANNOTATIONS, "ProfilerStep#1"))
            device, stream = rng.choice((0, 1)), rng.choice((0, 7, -1))
            self._add("gpu_user_annotation", name, (device, stream), self._ts(), self._dur(), {})
        self._counters()
        if rng.random() < 0.5:
            self._add("Trace", "PyTorch Profiler (0)", ("Spans", "x"), 0, 200, {})
        self._add("overhead", "Overhead", ("x", 0), self._ts(), self._dur(), {})
        rng.shuffle(self.events)
        self._memory(Random(len(self.events)))

    def _twins_and_nests(self) -> None:
        """Add events with equal times, and nested backward operators of one forward operator."""
        for twin in self.rng.sample(self.events, min(3, len(self.events))):
            where = twin["pid"], twin["tid"]
            self._add("cpu_op", "aten::mm", where, twin["ts"], twin["dur"], {})
        self._add("cpu_op", "aten::f", (100, 1), 1, 2, {"Sequence number": 2, "Fwd thread id": 0})
        for depth, thread in enumerate((1, 0, 1)):
            args = {"Sequence number": 2 if thread else -1, "Fwd thread id": thread}
            self._add("cpu_op", "aten::b", (100, 2), 20 + depth, 20 - 2 * depth, args)

    def _counters(self) -> None:
        rng = self.rng
        for _ in range(rng.randrange(4)):
            counters: Event = {"c.sum": rng.choice((1, 0.5, "n/a")), 'odd "$./~key': 3}
            counters.pop(rng.choice(sorted(counters)))
            if rng.random() < 0.7:
                counters["correlation"] = rng.randrange(1, 25)
            self._add("cuda_profiler_range", "k", (0, 0), self._ts(), 5, counters)

    def _memory(self, rng: Random) -> None:
        """Add allocations and frees at few addresses and times, and leave some of them out."""
        for device in rng.sample((-1, 0, 1), rng.randrange(4)):
            held = {addr: rng.choice((100, 200)) for addr in range(6) if rng.random() < 0.3}
            total, reserved = sum(held.values()), 500
            for number, ts in enumerate(sorted(rng.randrange(240) / 4 for _ in range(30))):
                addr = rng.randrange(8)
                change = -held.pop(addr) if addr in held else rng.choice((100, 200, 300))
                if change > 0:
                    held[addr] = change
                total, reserved = total + change, max(reserved, total + change)
                args = {"Device Type": int(device >= 0), "Device Id": device, "Addr": addr}
                args |= {"Bytes": change, "Total Allocated": total, "Ev Idx": number}
                args["Total Reserved"] = reserved if device >= 0 else 0
                pid, tid = rng.choice(THREADS)
                event: Event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"}
                event |= {"pid": pid, "tid": tid, "ts": ts, "args": args}
                if rng.random() < 0.9:
                    self.events.insert(rng.randrange(len(self.events) + 1), event)

    def _ts(self) -> float:
        return self.rng.randrange(120) / 2

    def _dur(self) -> float:
        return self.rng.choice((0, 0, 0.5, 1, 2, 5, 10, 25))

    def _add(  # noqa: PLR0917 (the six things that an event is)
        self, cat: str, name: str, thread: tuple[Any, Any], ts: float, dur: float, args: Event
    ) -> Event:
        event = {"ph": "X", "cat": cat, "name": name, "pid": thread[0], "tid": thread[1]}
        event |= {"ts": ts, "dur": dur, "args": args}
        self.events.append(event)
        return event

    def _steps(self) -> None:
        ts = self._ts() / 4
        for step in range(3, 3 + self.rng.randrange(1, 4)):
            dur = self.rng.choice((0, 5, 15, 20))
            self._add("user_annotation", f"ProfilerStep#{step}", (100, 1), ts, dur, {})
            ts += self.rng.choice((dur, dur, dur + 3, dur - 2))

    def _host_event(self) -> None:
        cat, names = self.rng.choice(
            [("cpu_op", OPERATORS)] * 3
            + [("user_annotation", ANNOTATIONS), ("python_function", ("nn.Module: L_0", "f.py(1)"))]
        )
        args: Event = {"External id": self.rng.randrange(1, 30)} if cat == "cpu_op" else {}
        if cat == "cpu_op" and self.rng.random() < 0.5:
            args |= {"Sequence number": self.rng.randrange(-1, 4)}
            args |= {"Fwd thread id": self.rng.choice((0, 0, 1))}
            args |= {"Input Dims": self.rng.choice(([[2, 2]], [[3]], []))}
        self._add(cat, self.rng.choice(names), self._thread(), self._ts(), self._dur(), args)

    def _thread(self) -> tuple[Any, Any]:
        return self.rng.choice((*THREADS, THREADS[0], THREADS[0]))

    def _launch(self) -> None:
        self.correlation += 1
        ts, dur, thread = self._ts(), self._dur(), self._thread()
        if self.rng.random() < 0.3:
            host = self.rng.choice(self.events)
            ts, dur, thread = host["ts"], 0, (host["pid"], host["tid"])
        args = {"correlation": self.correlation}
        self._add("cuda_runtime", self.rng.choice(CALLS), thread, ts, dur, args)
        if self.rng.random() < 0.3:
            self._add("cuda_driver", "cuLaunchKernel", thread, ts, dur / 2, args)
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 4))):
            self._device_event(self.correlation, ts)

    def _device_event(self, correlation: int | None, launched: float | None = None) -> None:
        rng = self.rng
        ts = self._ts() if launched is None else max(0, launched + rng.choice((-1, 0, 0.5, 3, 9)))
        cat, names = rng.choice(
            [("kernel", KERNELS)] * 4
            + [("gpu_memcpy", COPIES), ("gpu_memset", ("Memset (Device)",)), ("cuda_sync", ("s",))]
        )
        name = rng.choice(names)
        args: Event = {} if correlation is None else {"correlation": correlation}
        if rng.random() < 0.3:
            args["External id"] = rng.randrange(1, 30)
        if cat in ("gpu_memcpy", "gpu_memset") and rng.random() < 0.8:
            args["bytes"] = rng.choice((0, 1000, 12345))
            args["memory bandwidth (GB/s)"] = rng.choice((0, 1.5, 1.5, 12.25))
        if name.startswith("nccl") and rng.random() < 0.5:
            args["Process Group Name"] = rng.choice("xy")
        place: tuple[Any, Any] = (rng.choice((0, 0, 1)), rng.choice((0, 7, 7, 20, -1)))
        if rng.random() < 0.1:
            place = ("gpu", "s")
        elif rng.random() < 0.5:
            args |= {"device": place[0], "stream": place[1]}
        dur = -2.0 if rng.random() < 0.03 else 5e6 if rng.random() < 0.03 else self._dur()
        self._add(cat, name, place, ts, dur, args)


def write_job(job: Job, folder: Path) -> dict[str, dict[int, str]]:
    """Write one trace file per rank, all with the same base time; return the paths."""
    paths: dict[str, dict[int, str]] = {}
    for number, (run, ranks) in enumerate(job.items()):
        for rank, events in ranks.items():
            path = folder / f"{number}-{rank}.json"
            trace = {"baseTimeNanoseconds": BASE_NS, "traceEvents": events}
            path.write_text(json.dumps(trace), encoding="utf-8")
            paths.setdefault(run, {})[rank] = str(path)
    return paths


def store_of_job(factory: pytest.TempPathFactory, seed: int) -> Path:
    """Ingest both runs of a job with their derived tables, once for all tests."""

    def make(store: Path) -> None:
        for run, traces in write_job(random_job(seed), store.parent).items():
            hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
        hta_sql.publish(store).close()  # one catalog for both
        materialize(store)

    return made_once(factory, f"random_job_{seed}", make)
