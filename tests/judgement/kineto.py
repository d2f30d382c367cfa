"""Kineto traces of a simulated job, one file per rank, as a profiler would capture them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hta_sql
from hta_sql.store.query.trace_store import TraceStore
from tests.judgement.job import Job
from tests.judgement.machine import Item, Machine, Meeting, Span

BASE = 1_759_300_074_000_000_000
Event = dict[str, Any]


def begins(machine: Machine) -> list[int]:
    """Return the start of each rank's capture [ns], which is where its first step starts."""
    return [next(s.start for s in spans if s.name == "ProfilerStep#10") for spans in machine.spans]


def write(folder: Path, job: Job, machine: Machine) -> dict[int, str]:
    """Write the traces and return their paths by rank."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for rank, begin in enumerate(begins(machine)):
        if rank in job.missing:
            continue
        about = {
            "schemaVersion": 1,
            "host_name": f"node-{job.host(rank)}",
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.ranks},
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
            "baseTimeNanoseconds": BASE,
        }
        events = _events(job, rank, machine, begin)
        path = folder / f"rank-{rank}.json"
        path.write_text(json.dumps(about | {"traceEvents": events}))
        paths[rank] = str(path)
    return paths


def hide(event: Event, name: str) -> None:
    """Turn an event of a collective into that of a kernel whose name and arguments say nothing of it."""
    event["args"] = {key: value for key, value in event["args"].items() if key[0].islower()}
    event["name"] = name


def ingested(folder: Path, job: Job, machine: Machine) -> TraceStore:
    """Write the traces into a folder, and ingest them."""
    write(folder / "traces", job, machine)
    return hta_sql.ingest(folder / "traces", folder / "job.store")


def _events(job: Job, rank: int, machine: Machine, begin: int) -> list[Event]:
    host = job.host(rank)
    events: list[Event] = []
    drift = job.drift[host % len(job.drift)] if job.drift else 0.0
    offsets = job.clock_offset_ns
    offset = offsets[host % len(offsets)] if offsets else 0

    def reads(ns: int) -> int:
        return ns + offset + round(drift * ns)

    numbers = {id(item): number for number, item in enumerate(machine.items[rank], 1)}
    place = {"pid": 4000 + rank, "tid": 4000 + rank}
    events += [
        _event(span, place, reads, _host_arguments(job, rank, span, numbers))
        for span in machine.spans[rank]
        if span.start >= begin
        and (job.writes_steps or "ProfilerStep" not in span.name)
        and (job.writes_waits or "Synchronize" not in span.name)
    ]
    for item in machine.items[rank]:
        if item.start >= begin:
            where = {"pid": 0, "tid": item.stream}
            about: Event = {"device": 0, "context": 1, "stream": item.stream}
            about |= {"correlation": numbers[id(item)], "grid": [item.grid, 1, 1]}
            about |= {"block": [128, 1, 1], **_metadata(job, rank, item.meeting)}
            category = "gpu_memcpy" if item.name.startswith("Memcpy") else "kernel"
            span = Span(category, item.name, item.start, item.end)
            events.append(_event(span, where, reads, about))
    return events


def _event(span: Span, place: Event, reads: Any, args: Event) -> Event:
    ts, end = reads(span.start), reads(span.end)
    times = {"ts": ts / 1000, "dur": (end - ts) / 1000}
    return {"ph": "X", "cat": span.category, "name": span.name, **place, **times, "args": args}


def _host_arguments(job: Job, rank: int, span: Span, numbers: dict[int, int]) -> Event:
    launched: Item | None = span.launched
    if launched is not None:
        return {"correlation": numbers[id(launched)]}
    return _metadata(job, rank, span.meeting)


def _metadata(job: Job, rank: int, meeting: Meeting | None) -> Event:
    if meeting is None or not {"all", meeting.kind}.isdisjoint(job.lost_metadata):
        return {}
    about = {
        "Collective name": meeting.name,
        "In msg nelems": meeting.elements,
        "Out msg nelems": meeting.elements,
        "Group size": len(meeting.group),
        "dtype": "BFloat16",
        "Process Group Name": f"{meeting.kind}{min(meeting.group)}",
        "Process Group Description": meeting.kind,
        "Process Group Ranks": json.dumps(list(meeting.group)),
        "Seq": meeting.number + 1,
    }
    if meeting.src is not None:
        name = "send" if rank == meeting.src else "recv"
        about |= {"Collective name": name, "Src Rank": meeting.src, "Dst Rank": meeting.dst}
    return about
