"""Specs of simulated jobs for tests, and readers of their files that do not use the simulator."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from hta_sql.synthetic import JobSpec

Event = dict[str, Any]


SMALL = JobSpec(ranks=2, steps=3, layers=2)


EVERYTHING = replace(
    SMALL,
    comm_streams=2,
    memory_events=True,
    python_stacks=True,
    sync_events=True,
    graph_launches=True,
    early_kernels=3,
    lost_launch_every=7,
    clock_offsets_ns={1: 4_000_001},
    base_shifts_ns={1: 1_000_000_007},
    slow_kernels={1: 1.5},
)


BUSY = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path: Path) -> dict[str, Any]:
    """Read a trace, with times as exact integers [ns]."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal)
    for event in trace["traceEvents"]:
        for key in event.keys() & {"ts", "dur"}:
            event[key] = int(event[key] * 1000)
    return trace


def events_of(path: Path, *categories: str) -> list[Event]:
    """Return the complete events of the given categories in a trace."""
    return [
        event
        for event in load(path)["traceEvents"]
        if event.get("cat") in categories and event["ph"] == "X"
    ]


def class_of(event: Event) -> str:
    """Return the class of a GPU operation, from its category and name."""
    if event["cat"] != "kernel":
        return "memory"
    return "communication" if event["name"].startswith("nccl") else "computation"


def covered(spans: Iterable[tuple[int, int]]) -> set[range]:
    """Merge spans into disjoint ranges."""
    merged: list[range] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, end))
        else:
            merged.append(range(start, end))
    return set(merged)


def length(events: Iterable[Event]) -> int:
    """Return the time during which at least one event runs [ns]."""
    return sum(len(r) for r in covered((e["ts"], e["ts"] + e["dur"]) for e in events))
