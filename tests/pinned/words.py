"""Jobs that use every name that the library knows, such as operators, kernels, calls and frames.

The names are combined at random. All times are a few whole microseconds, so many events begin and
end at the same time.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.golden_cases import TESTS

if TYPE_CHECKING:
    from tests.pinned.jobs import Runs

Event = dict[str, Any]

BASE_NS = 1_700_000_000_000_000_000

VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("True", "False"),
    "list": (
        "[1, 1]",
        "[0, 0]",
        "[2, 2]",
        "[2]",
        "[0, 1]",
        "[-1]",
        "[True, False]",
        "[True, True, True]",
    ),
    "number": ("0", "1", "2", "-1", "6", "7", "15", "16", "0.5", "128", ""),
}

SIZES = (1, 2, 3, 4, 8, 16, 64)


def _words() -> dict[str, list[str]]:
    """Return the names of each kind that vocabulary.csv lists."""
    found: dict[str, list[str]] = {}
    with Path(__file__).with_name("vocabulary.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["kind"], []).append(line["word"])
    return found


WORDS = _words()


def _signatures() -> dict[str, int]:
    """Return the number of arguments of each torch operator."""
    with (TESTS / "signatures" / "signatures.csv").open(encoding="utf-8", newline="") as file:
        return {line["operator"]: len(line["arguments"].split()) for line in csv.DictReader(file)}


def write_words(folder: Path) -> Runs:
    """Write three runs: on NVIDIA devices, on AMD devices, and without a device."""
    runs: Runs = {}
    for run, ranks in (("nvidia", 4), ("amd", 3), ("host", 2)):
        runs[f"words.{run}"] = {}
        for rank in range(ranks):
            path = folder / f"{run}-{rank}.json"
            path.write_text(json.dumps(Wordy(run, rank, ranks).trace()), encoding="utf-8")
            runs[f"words.{run}"][rank] = str(path)
    return runs


class Wordy:
    """The random events of one rank: nested calls on two threads, which launch on two streams."""

    def __init__(self, run: str, rank: int, ranks: int) -> None:
        self.rng = Random(f"{run} {rank}")
        self.run, self.rank, self.ranks = run, rank, ranks
        self.events: list[Event] = []
        self.now = 10
        self.free = {7: 0, 20: 0}
        self.ids = 0
        self.seq = 0
        self.held: list[tuple[int, int]] = []
        self.total = 4096
        self.operators = _signatures()

    def trace(self) -> Event:
        """Return the whole trace."""
        for step in range(1, 5):
            self._span("user_annotation", f"ProfilerStep#{step}", 1, {}, self._step)
            self.now += self.rng.choice((0, 0, 3))
        return {
            "schemaVersion": 1,
            "baseTimeNanoseconds": BASE_NS,
            **self._header(),
            "traceEvents": self.events,
        }

    def _header(self) -> Event:
        members = list(range(self.ranks))
        backend = "cpu:gloo" if self.run == "host" else "cpu:gloo,cuda:nccl"
        alike = {"backend_config": backend, "pg_size": self.ranks, "ranks": members}
        groups = [
            {"pg_name": f"{place}", "pg_desc": desc, **alike}
            for place, desc in enumerate(WORDS["group"])
        ]
        device = WORDS["device"][(self.rank + 2 * (self.run == "amd")) % len(WORDS["device"])]
        about = {"id": 0, "name": device, "totalGlobalMem": 8192, "numSms": 8, "computeMajor": 8}
        distributed = {"rank": self.rank, "world_size": self.ranks, "backend": backend}
        distributed["pg_config"] = groups
        header: Event = {"distributedInfo": distributed, "host_name": f"node-{self.rank // 2}"}
        return header if self.run == "host" else header | {"deviceProperties": [about]}

    def _step(self) -> None:
        for _ in range(60):
            self._call(1, 0)
            self.now += self.rng.choice((0, 1, 4))
        for _ in range(25):
            self._call(2, 0)
        self.now += 5

    def _span(self, category: str, name: str, tid: int, args: Event, inside: Any) -> None:
        event: Event = {"ph": "X", "cat": category, "name": name, "pid": 100, "tid": tid}
        event |= {"ts": self.now, "dur": 0, "args": args}
        self.events.append(event)
        inside()
        event["dur"] = self.now - event["ts"]

    def _call(self, tid: int, depth: int) -> None:
        """Add an operator, annotation or frame, with nested calls and launches."""
        rng = self.rng

        def inside() -> None:
            self.now += rng.choice((0, 0, 1, 2))
            for _ in range(rng.choice((0, 1, 1, 2)) if depth < 3 else 0):
                self._call(tid, depth + 1)
            for _ in range(rng.choice((0, 0, 1, 1, 3))):
                self._launch(tid, external)
            if rng.random() < 0.2:
                self._other_call(tid)
            if rng.random() < 0.3:
                self._memory(tid)
            self.now += rng.choice((0, 0, 1, 2, 5))

        self.ids += 1
        external = self.ids
        kind = rng.choice(("cpu_op", "cpu_op", "cpu_op", "system", "system", "annotation", "frame"))
        if kind == "cpu_op":
            name = rng.choice(sorted(self.operators))
            self._span("cpu_op", name, tid, self._inputs(name, external), inside)
        elif kind == "system":
            self._span(
                "cpu_op", rng.choice(WORDS["operator"]), tid, self._inputs("", external), inside
            )
        elif kind == "annotation":
            self._span("user_annotation", rng.choice(WORDS["annotation"]), tid, {}, inside)
        elif self.rank % 2 == 0:
            self._span(
                "python_function", rng.choice(WORDS["frame"]), tid, {"Python id": external}, inside
            )

    def _other_call(self, tid: int) -> None:
        self._span(self._api(), self.rng.choice(WORDS["call"]), tid, {}, lambda: None)
        self.events[-1]["dur"] = self.rng.choice((0, 1, 10))
        self.now += self.events[-1]["dur"]

    def _api(self) -> str:
        return self.rng.choice(("cuda_runtime", "cuda_runtime", "cuda_driver"))

    def _inputs(self, name: str, external: int) -> Event:
        rng = self.rng
        args: Event = {"External id": external, "Sequence number": rng.randrange(-1, 40)}
        args["Fwd thread id"] = rng.choice((0, 0, 1))
        if rng.random() < 0.1:
            return args
        count = self.operators.get(name, rng.randrange(4))
        kind = rng.choice(WORDS["type"][:6])
        size = rng.choice(SIZES)
        dims: list[Any] = []
        for _ in range(count):
            length = rng.choice((0, 1, 2, 2, 2, 3, 3, 4, 4))
            dims.append([rng.choice((size, size, *SIZES)) for _ in range(length)])
        types = [rng.choice((kind, kind, kind, *WORDS["type"])) for _ in dims]
        values = [rng.choice(("", "", *VALUES[rng.choice(sorted(VALUES))])) for _ in dims]
        args |= {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}
        if self.rank % 2 == 1 and rng.random() < 0.5:
            args["Call stack"] = ";".join(rng.sample(WORDS["frame"], 3))
            args["Module Hierarchy"] = "TOP(Model).l(Linear)"
        return args

    def _launch(self, tid: int, external: int) -> None:
        if self.run == "host":
            return
        rng = self.rng
        self.ids += 1
        args = {"correlation": self.ids, "External id": external}
        launched = self.now
        self._span(self._api(), rng.choice(WORDS["launch"]), tid, args, lambda: None)
        self.events[-1]["dur"] = rng.choice((0, 1, 2))
        self.now += self.events[-1]["dur"]
        stream = rng.choice((7, 7, 20))
        start = max(launched + rng.choice((0, 1, 5)), self.free[stream] * (rng.random() < 0.9))
        dur = rng.choice((0, 1, 2, 5, 10))
        self.free[stream] = max(self.free[stream], start + dur)
        args |= {"device": 0, "stream": stream, "context": 1}
        self._device_event(start, dur, stream, args)

    def _device_event(self, start: int, dur: int, stream: int, args: Event) -> None:
        rng = self.rng
        kind = rng.choice(("kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset", "comm"))
        name = {
            "kernel": rng.choice(WORDS["kernel"]),
            "gpu_memcpy": rng.choice(WORDS["copy"]),
            "gpu_memset": "Memset (Device)",
        }.get(kind, rng.choice(WORDS["communication"]))
        if kind.startswith("gpu_"):
            args |= {
                "bytes": rng.choice((0, 1000, 4096)),
                "memory bandwidth (GB/s)": rng.choice((0, 1.5, 12.25)),
            }
        else:
            args |= {
                "grid": [rng.choice((1, 8, 132)), 1, rng.choice((1, 2))],
                "block": [rng.choice((32, 128, 1024)), 1, 1],
            }
            args |= {
                "registers per thread": rng.choice((16, 255)),
                "shared memory": rng.choice((0, 1024)),
            }
            args |= {
                "est. achieved occupancy %": rng.choice((0, 50, 100)),
                "blocks per SM": rng.choice((0.5, 2.0)),
            }
            args |= {"warps per SM": rng.choice((0.5, 8.0))}
        if kind == "comm":
            args |= self._metadata()
        if rng.random() < 0.05:
            args.pop("correlation")
        category = "kernel" if kind == "comm" else kind
        event: Event = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream}
        self.events.append(event | {"ts": start, "dur": dur, "args": args})

    def _metadata(self) -> Event:
        """Return the metadata of the next collective, which is equal on all ranks.

        Some collectives have no metadata, and some are missing on a rank.
        """
        self.seq += 1 + (self.rng.random() < 0.02)
        common = Random(f"{self.run} {self.seq}")
        place = common.randrange(len(WORDS["group"]))
        name, size = common.choice(WORDS["collective"]), common.choice((1, 64, 4096, 1 << 20))
        args: Event = {"Collective name": name, "dtype": common.choice(WORDS["element"])}
        args |= {"In msg nelems": size, "Out msg nelems": size, "Group size": self.ranks}
        args |= {"Process Group Name": f"{place}"}
        args |= {"Process Group Description": WORDS["group"][place]}
        args |= {"Process Group Ranks": json.dumps(list(range(self.ranks)))}
        if name in {"send", "recv", "send_recv"}:
            source = common.randrange(self.ranks)
            args |= {"Src Rank": source, "Dst Rank": (source + 1) % self.ranks}
        if "to_all" in name:
            args |= {"In split size": json.dumps([size] * self.ranks), "Out split size": "[]"}
        if self.run == "nvidia":
            args["Seq"] = self.seq
        return args if self.rng.random() > 0.1 else {}

    def _memory(self, tid: int) -> None:
        rng = self.rng
        if self.held and rng.random() < 0.5:
            addr, size = self.held.pop(rng.randrange(len(self.held)))
            change = -size
        else:
            addr, change = rng.randrange(12), rng.choice((512, 1024, 2048))
            self.held.append((addr, change))
        self.total += change
        args = {
            "Device Type": int(self.run != "host"),
            "Device Id": 0 if self.run != "host" else -1,
            "Addr": addr,
        }
        args |= {
            "Bytes": change,
            "Total Allocated": self.total,
            "Total Reserved": max(self.total, 6000),
        }
        event: Event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"}
        self.events.append(event | {"pid": 100, "tid": tid, "ts": self.now, "args": args})
