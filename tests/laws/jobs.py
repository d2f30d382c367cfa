"""Traces of a job as Python objects: read, copied and written without rounding a number."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hta_sql.traces.peek import peek
from hta_sql.traces.source import open_trace, whole_text

Event = dict[str, Any]
Trace = dict[str, Any]

_GZIP = b"\x1f\x8b"
_NUMBER = re.compile(rb'"@(-?[0-9.Ee+-]+)@"')
_MARK_OF_MERGED = "pid_raw"
_RANK_IN_NAME = re.compile(r"rank[-_\[ ]?(\d+)|worker(\d+)", re.IGNORECASE)


@dataclass
class Job:
    """A job: its name, and the trace of each rank with all numbers as integers or decimals."""

    name: str
    ranks: dict[int, Trace]

    def copy(self) -> Job:
        """Return a job whose traces can be changed."""
        return Job(self.name, deepcopy(self.ranks))

    @property
    def event_count(self) -> int:
        """Number of events of all ranks."""
        return sum(len(trace["traceEvents"]) for trace in self.ranks.values())

    @property
    def has_base_times(self) -> bool:
        """Whether every rank states the time from which its events are counted."""
        return all("baseTimeNanoseconds" in trace for trace in self.ranks.values())


def read_trace(path: Path) -> Trace | None:
    """Read a Kineto trace; return None if the file is something else."""
    content = path.read_bytes()
    try:
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
        trace = json.loads(content, parse_float=Decimal)
    except (ValueError, EOFError, zlib.error):
        return None
    if isinstance(trace, list) and trace and isinstance(trace[0], dict) and "ph" in trace[0]:
        trace = {"traceEvents": trace}
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return None
    return trace


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace, decimals digit by digit."""
    text = json.dumps(trace, default=lambda number: f"@{number}@").encode()
    path.write_bytes(_NUMBER.sub(rb"\1", text))


def write_job(job: Job, folder: Path) -> dict[int, str]:
    """Write one file per rank; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {rank: folder / f"rank{rank}.json" for rank in job.ranks}
    for rank, path in paths.items():
        write_trace(job.ranks[rank], path)
    return {rank: str(path) for rank, path in paths.items()}


def jobs_of(folder: Path) -> list[Job]:
    """Return the jobs in a folder: one, or a job per file if two files state the same rank."""
    files = sorted(p for p in folder.iterdir() if re.search(r"\.(json|gz)$", p.name))
    traces = [(path, trace) for path in files if (trace := read_trace(path))]
    if not traces:
        return []
    if len(traces) == 1 and (ranks_in_file := _split(traces[0][0])):
        return [Job(folder.name, ranks_in_file)]
    ranks = [_rank_of(path, trace, at) for at, (path, trace) in enumerate(traces)]
    if max(Counter(ranks).values()) == 1 and _is_one_job([trace for _, trace in traces]):
        by_rank = dict(sorted(zip(ranks, (trace for _, trace in traces), strict=True)))
        return [Job(folder.name, by_rank)]
    return [Job(f"{folder.name}.{path.name.split('.')[0]}", {0: trace}) for path, trace in traces]


def _split(path: Path) -> dict[int, Trace]:
    """Return the ranks of a merged file, each as a trace of its own; none for another file."""
    traces: dict[int, Trace] = {}
    for of in peek(str(path)).merged:
        with open_trace(of.path(str(path))) as stream:
            traces[of.rank] = json.loads(whole_text(stream), parse_float=Decimal)
        for event in traces[of.rank]["traceEvents"]:
            event.get("args", {}).pop(_MARK_OF_MERGED, None)
    return traces


def _rank_of(path: Path, trace: Trace, position: int) -> int:
    stated = (trace.get("distributedInfo") or {}).get("rank")
    if isinstance(stated, int):
        return stated
    named = _RANK_IN_NAME.search(path.name)
    return int(named[1] or named[2]) if named else position


def _is_one_job(traces: list[Trace]) -> bool:
    """Return whether traces state the ranks of one job, or are alone."""
    sizes = [(trace.get("distributedInfo") or {}).get("world_size") for trace in traces]
    return len(traces) == 1 or (len(set(sizes)) == 1 and sizes[0] != 1)
