"""HTA's view of a trace in plain Python, read from the raw file, with HTA's quirks as switches.

This module defines rows and scope; plain_time.py and plain_path.py compute frames and paths.
With all causes that the ledger lists for a frame, the result is exactly HTA's; without any cause,
it is ours. A cause that changes nothing is wrong.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tests.parity.jobs import files_of

Causes = frozenset[str]

DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}
DEVICE_SYNCS = {"Event Sync", "Context Sync"}
DIGITS = 3
"""Number of decimals that a time in microseconds has at nanosecond resolution."""


@dataclass(slots=True)
class Row:
    """One complete event. ``ts`` and ``dur`` are integer ns, or with Q6 float µs.

    ``correlation`` and ``stream`` are -1 if the trace does not have them. ``partner`` is HTA's
    ``index_correlation``.
    """

    event: int
    cat: str
    name: str
    pid: Any
    tid: Any
    ts: Any
    dur: Any
    stream: int
    correlation: int
    bandwidth: float
    wait_on_stream: int
    wait_on_record: int
    partner: int = -1

    @property
    def end(self) -> Any:
        """Return the end time."""
        return self.ts + self.dur

    @property
    def is_device(self) -> bool:
        """Return whether the row has a stream, so that HTA takes it for device activity."""
        return self.stream != -1

    @property
    def is_launched(self) -> bool:
        """Return whether HTA expects the row to have a launch."""
        return (self.stream >= 0 and self.correlation >= 0) or self.name in DEVICE_SYNCS

    @property
    def is_work(self) -> bool:
        """Return whether the row is device work (a kernel, copy or memset) and not a wait."""
        return self.cat in DEVICE_CATEGORIES and not self.name.startswith("event_")


@dataclass(frozen=True)
class Job:
    """All rows of each rank of a job."""

    name: str
    ranks: dict[int, list[Row]]
    unit: int
    """Number of time units per microsecond."""


@lru_cache(maxsize=2)
def read_job(name: str, *, floats: bool) -> Job:
    """Read a job's traces with times as float64 microseconds (Q6) or exact nanoseconds."""
    ranks: dict[int, list[Row]] = {}
    for place, path in enumerate(files_of(name)):
        trace = _load(path)
        rank = (trace.get("distributedInfo") or {}).get("rank", place)
        ranks[int(rank)] = _rows(trace["traceEvents"], floats=floats)
        _link(ranks[int(rank)])
    zero = min(row.ts for rows in ranks.values() for row in rows)
    for rows in ranks.values():
        for row in rows:
            row.ts -= zero
    return Job(name, ranks, 1 if floats else 1000)


def _load(path: Path) -> dict[str, Any]:
    text = path.read_bytes()
    if text.startswith(b"\x1f\x8b"):
        text = gzip.decompress(text)
    trace: dict[str, Any] = json.loads(
        text.decode("utf-8", "replace"), parse_float=str, strict=False
    )
    return trace


def _rows(events: list[dict[str, Any]], *, floats: bool) -> list[Row]:
    def time(value: Any) -> Any:
        if floats:
            return float(value)
        if isinstance(value, int):
            return 1000 * value
        whole, _, digits = value.partition(".")
        if len(digits) <= DIGITS and whole.isdigit():  # the fast path for nearly all numbers
            return int(whole + digits.ljust(DIGITS, "0"))
        return int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))

    rows = []
    for number, event in enumerate(events):
        cat, dur = event.get("cat"), event.get("dur")
        if cat is None or dur is None or cat == "Trace":
            continue
        args = event.get("args") or {}
        rows.append(
            Row(
                number,
                cat,
                event["name"],
                event.get("pid"),
                event.get("tid"),
                time(event["ts"]),
                time(dur),
                _number(args.get("stream")),
                _number(args.get("correlation")),
                float(args.get("memory bandwidth (GB/s)") or 0),
                _number(args.get("wait_on_stream")),
                _number(args.get("wait_on_cuda_event_record_corr_id")),
            )
        )
    return rows


def _number(value: Any) -> int:
    try:
        return int(float(value))
    except (TypeError, ValueError):
        return -1


def _link(rows: list[Row]) -> None:
    """Link rows by correlation as HTA does: to the last of several partners; without one, to 0."""
    sides: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for row in rows:
        if row.correlation != -1:
            sides[row.is_launched][row.correlation] = row.event
    for row in rows:
        if row.correlation != -1:
            row.partner = sides[not row.is_launched].get(row.correlation, 0)


def scoped(job: Job, causes: Causes, *, whole: bool) -> dict[int, list[Row]]:
    """Remove the last profiler step if there are at least two steps.

    Q15: the last step begins at the later of its host and device annotations. Q60: device rows
    remain only if their launch does; otherwise, rows without a launch are selected by their start
    time.
    """
    steps = {
        row.name
        for rows in job.ranks.values()
        for row in rows
        if row.name.startswith("ProfilerStep") and not row.is_device
    }
    if len(steps) < 2:
        return dict(job.ranks)
    return {rank: _scoped(rows, causes, whole=whole) for rank, rows in job.ranks.items()}


def _scoped(rows: list[Row], causes: Causes, *, whole: bool) -> list[Row]:
    starts = [
        row.ts
        for row in rows
        if row.name.startswith("ProfilerStep")
        and not row.is_device
        and ("Q15" in causes or row.cat != "gpu_user_annotation")
    ]
    behind = max((row.end for row in rows), default=0) + 1
    until = behind if whole or not starts else max(starts)
    launched = {row.correlation for row in rows if not row.is_launched and row.ts < until}
    recorded = {row.correlation for row in rows if not row.is_launched}
    kept = []
    for row in rows:
        if not row.is_launched:
            keep = row.ts < until
        elif "Q60" in causes or (row.correlation != -1 and row.correlation in recorded):
            keep = row.correlation in launched
        else:
            keep = row.ts < until
        if keep:
            kept.append(row)
    return kept


def device_rows(rows: list[Row], causes: Causes) -> list[Row]:
    """Return the rows that are device work.

    With Q20, the waits are included; with ``rows``, so is every other row that has a stream.
    """
    return [
        row
        for row in rows
        if row.is_device
        and (
            row.is_work
            or ("Q20" in causes and row.cat == "cuda_sync")
            or ("rows" in causes and row.cat != "cuda_sync")
        )
    ]


_COMMUNICATION = re.compile(r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
_MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
_OTHER = re.compile(
    r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(cuda.*LaunchKernel)"
    r"|(^runFunction)|(^hip)|(^job_exe)|(^packet)|(^pe_exe)|(^cpum_exe_subgraph)|(^hccl)"
    r"|(^collective_subgraph_execution)"
)


@cache
def type_by_name(name: str) -> str:
    """Return HTA's type of a kernel: the first pattern that matches the start of its name (Q19)."""
    if _COMMUNICATION.match(name):
        return "COMMUNICATION"
    if _MEMORY.match(name):
        return "MEMORY"
    return "OTHER" if _OTHER.match(name) else "COMPUTATION"


def by_type(rows: list[Row], causes: Causes, classes: dict[int, str]) -> dict[str, list[Row]]:
    """Group device rows by type: by name with Q19, otherwise by our class of each event."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        ours = classes.get(row.event)
        kind = type_by_name(row.name) if "Q19" in causes or ours is None else ours.upper()
        found[kind].append(row)
    return found
