"""Traces of a planted job as a profiler would capture them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jobs.simulator import Collective, Event, Rank, simulate
from tests.jobs.spec import PlantedJob

GROUP_NAMES = {"tp": 1, "dp": 2, "pp": 3, "ep": 4, "fsdp": 5}
ROW = 128
"""Number of elements in a token."""


@dataclass(frozen=True)
class Captured:
    """A captured event, with its arguments and with times on the rank's clock."""

    event: Event
    ts: int
    end: int
    args: dict[str, Any]


@dataclass(frozen=True)
class Trace:
    """The captured trace of one rank, whose events are identified by their index."""

    did: Rank
    events: list[Captured]


def capture(job: PlantedJob) -> list[Trace]:
    """Simulate and capture a job, and record the index of each collective's event."""
    ranks = simulate(job)
    last = max(event.end for rank in ranks for event in rank.events)
    return [Trace(did, _captured(job, did, last)) for did in ranks]


def write_job(folder: Path, job: PlantedJob) -> tuple[dict[int, str], list[Trace]]:
    """Write one trace file per rank; return the paths by rank, and the captured traces."""
    folder.mkdir(parents=True, exist_ok=True)
    traces = capture(job)
    paths = {}
    for trace in traces:
        rank = trace.did.rank
        header: dict[str, Any] = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.ranks},
            "baseTimeNanoseconds": 1_759_300_074_000_000_000,
        }
        if job.names_hosts:
            header["host_name"] = job.host_of(rank)
        text = ",\n".join(map(_json, trace.events))
        path = folder / f"rank-{rank}.json"
        path.write_text(f'{json.dumps(header)[:-1]},\n"traceEvents": [\n{text}\n]}}\n')
        paths[rank] = str(path)
    return paths, traces


def _captured(job: PlantedJob, did: Rank, last: int) -> list[Captured]:
    first = job.starts_late.get(did.rank, 0)
    end = last - job.ends_early.get(did.rank, 0)
    lost = job.lost.get(did.rank, ())
    clock = job.clocks.get(did.rank)
    kept: list[Captured] = []
    number = -1
    for event in did.events:
        part = event.collective if event.category == "kernel" else None
        number += part is not None
        if event.start < first or event.end > end or (part is not None and number in lost):
            continue
        if event.name.startswith("ProfilerStep") and not job.writes_steps:
            continue
        if part is not None:
            part.event = len(kept)
        ts, until = (clock.reads(t) if clock else t for t in (event.start, event.end))
        ts, until = (t - t % job.tick_ns for t in (ts, until))
        kept.append(Captured(event, ts, until, _arguments(job, event)))
    return kept


def _json(captured: Captured) -> str:
    event = captured.event
    on_gpu = event.stream is not None
    place = {"pid": 0, "tid": event.stream} if on_gpu else {"pid": 100, "tid": 100}
    head = json.dumps({"ph": "X", "cat": event.category, "name": event.name} | place)
    return (
        f'{head[:-1]}, "ts": {_microseconds(captured.ts)}, '
        f'"dur": {_microseconds(captured.end - captured.ts)}, "args": {json.dumps(captured.args)}}}'
    )


def _arguments(job: PlantedJob, event: Event) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.external}
    if event.stream is not None:
        args |= {"device": 0, "stream": event.stream, "correlation": event.correlation}
        args |= {"grid": [event.grid, 1, 1], "block": [128, 1, 1]}
    elif event.correlation:
        args["correlation"] = event.correlation
    on_gpu = event.stream is not None
    is_written = job.metadata != "none" and (not on_gpu or job.metadata != "operator")
    if event.collective and is_written and event.collective.kind not in job.lost_metadata:
        args |= metadata(job, event.collective)
    return args


def metadata(job: PlantedJob, part: Collective) -> dict[str, Any]:
    """Return the arguments that PyTorch records for a collective."""
    group = sorted(part.group) if part.kind == "pp" else list(part.group)
    is_cut = job.cut_lists and len(group) > 2
    args: dict[str, Any] = {
        "Collective name": part.name,
        "In msg nelems": part.elements,
        "Out msg nelems": part.elements,
        "Group size": len(group),
        "dtype": part.elem_type,
        "Process Group Name": str(GROUP_NAMES[part.kind]),
        "Process Group Description": part.kind,
        "Process Group Ranks": f"[{group[0]}, {group[1]}, ...]" if is_cut else json.dumps(group),
    }
    if part.kind == "pp":
        args |= {"Src Rank": part.group[0], "Dst Rank": part.group[1]}
    if part.kind == "ep":
        args |= _splits(job, part)
    if job.metadata != "without seq":
        args["Seq"] = _seq(job, part)
    return args


def tokens_sent(job: PlantedJob, part: Collective) -> list[int]:
    """Return how many tokens a rank sends to each member of its group.

    Every second exchange returns the tokens.
    """
    back = part.number % 2 == 1
    pairs = [(other, part.rank) if back else (part.rank, other) for other in part.group]
    return [job.tokens(part.number // 2, source, target) for source, target in pairs]


def tokens_received(job: PlantedJob, part: Collective) -> list[int]:
    """Return how many tokens a rank receives from each member of its group."""
    back = part.number % 2 == 1
    pairs = [(part.rank, other) if back else (other, part.rank) for other in part.group]
    return [job.tokens(part.number // 2, source, target) for source, target in pairs]


def _splits(job: PlantedJob, part: Collective) -> dict[str, Any]:
    sent, received = tokens_sent(job, part), tokens_received(job, part)
    texts = [
        f"[{', '.join(map(str, sizes[:2]))}, ...]" if job.cut_splits else json.dumps(sizes)
        for sizes in (sent, received)
    ]
    return {
        "In split size": texts[0],
        "Out split size": texts[1],
        "In msg nelems": ROW * sum(sent),
        "Out msg nelems": ROW * sum(received),
    }


def _seq(job: PlantedJob, part: Collective) -> int:
    last = job.ranks - 1
    if job.seq == "doubled" or (job.seq == "doubled on one rank" and part.rank == last):
        return 1 + part.number // 2
    if job.seq == "off on one rank" and part.rank == last:
        return 2 + part.number
    return 1 + part.number


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
