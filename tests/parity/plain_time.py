"""HTA's time frames in plain Python: breakdown, overlap, kernel types, kernels and idle time.

Each function takes the rows of a job and the quirks to apply, and returns ``{key: numbers}``, with
the keys of the ledger and times in microseconds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import stdev
from typing import Any

import numpy as np

from tests.parity.plain_trace import Causes, Job, Row, by_type, device_rows, scoped

Classes = dict[int, dict[int, str]]
"""Rank ─▶ device event ─▶ our class of the event."""

Numbers = dict[str, float]
Answer = dict[tuple[Any, ...], Numbers]


def merged(rows: Iterable[Row]) -> list[tuple[Any, Any]]:
    """Merge the spans of rows that overlap or touch."""
    spans: list[list[Any]] = []
    for ts, end in sorted((row.ts, row.end) for row in rows):
        if spans and ts <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([ts, end])
    return [(start, end) for start, end in spans]


def length(spans: Iterable[tuple[Any, Any]]) -> Any:
    """Return the total length of spans."""
    return sum(end - start for start, end in spans)


def temporal(job: Job, causes: Causes, classes: Classes, *, whole: bool = False) -> Answer:
    """Return the span of each rank, and its idle, compute and other time."""
    answer: Answer = {}
    for rank, rows in scoped(job, causes, whole=whole).items():
        work = device_rows(rows, causes)
        spans = merged(work)
        span = spans[-1][1] - spans[0][0]
        idle = span - length(spans)
        compute = length(merged(by_type(work, causes, classes[rank])["COMPUTATION"]))
        other = span - compute - idle
        times = {"kernel_time(us)": span, "idle_time(us)": idle}
        times |= {"compute_time(us)": compute, "non_compute_time(us)": other}
        shares = {"idle_time_pctg": idle, "compute_time_pctg": compute}
        shares |= {"non_compute_time_pctg": other}
        answer[rank,] = {name: time / job.unit for name, time in times.items()}
        answer[rank,] |= {name: round(100 * time / span, 2) for name, time in shares.items()}
    return answer


def whole_temporal(job: Job, causes: Causes, classes: Classes) -> Answer:
    """Return :func:`temporal` with the last profiler step included."""
    return temporal(job, causes, classes, whole=True)


def overlap(job: Job, causes: Causes, classes: Classes) -> Answer:
    """Return the share of communication that is overlapped by computation [%]."""
    answer: Answer = {}
    for rank, rows in scoped(job, causes, whole=False).items():
        kinds = by_type(device_rows(rows, causes), causes, classes[rank])
        comm, compute = merged(kinds["COMMUNICATION"]), merged(kinds["COMPUTATION"])
        both = length(comm) + length(compute)
        both -= length(merged([*kinds["COMMUNICATION"], *kinds["COMPUTATION"]]))
        share = 100 * both / length(comm) if comm else math.nan
        answer[rank,] = {"comp_comm_overlap_pctg": share}
    return answer


ORDER = ("COMPUTATION", "COMMUNICATION", "MEMORY")


def kernel_types(job: Job, causes: Causes, classes: Classes) -> Answer:
    """Return the time of each combination of kernel types, over all ranks.

    With Q61, each part is truncated to whole microseconds.
    """
    sums: dict[str, Any] = defaultdict(int)
    for rank, rows in scoped(job, causes, whole=False).items():
        kinds = by_type(device_rows(rows, causes), causes, classes[rank])
        moves = [
            (at, kind, step)
            for kind in ORDER
            for span in merged(kinds[kind])
            for at, step in ((span[0], 1), (span[1], -1))
        ]
        running: set[str] = set()
        before: Any = 0
        for at, kind, step in sorted(moves):
            label = " overlapping ".join(k for k in ORDER if k in running)
            if label and ("empty" in causes or at > before):
                stretch = at - before
                sums[label] += stretch // job.unit * job.unit if "Q61" in causes else stretch
            (running.add if step > 0 else running.discard)(kind)
            before = at
    return {(label,): {"sum": time / job.unit} for label, time in sums.items()}


def kernels(job: Job, causes: Causes, classes: Classes) -> Answer:
    """Return the durations of each kernel by type and rank."""
    answer: Answer = {}
    for rank, rows in scoped(job, causes, whole=False).items():
        kinds = by_type(device_rows(rows, causes), causes, classes[rank])
        for kind in ORDER:
            durations: dict[str, list[float]] = defaultdict(list)
            for row in kinds[kind]:
                durations[row.name].append(row.dur / job.unit)
            for name, times in durations.items():
                answer[kind, name, rank] = {
                    "sum (us)": math.fsum(times),
                    "max (us)": max(times),
                    "min (us)": min(times),
                    "mean (us)": math.fsum(times) / len(times),
                    "stddev": stdev(times) if len(times) > 1 else 0.0,
                }
    return answer


WAIT = 30
"""Upper limit of gaps that count as kernel_wait [µs]."""


def idle(job: Job, causes: Causes, classes: Classes) -> Answer:
    """Return the idle time and the gaps of each stream by cause.

    Q27: a gap begins at the end of the previous row, otherwise at the latest end so far. Q28: an
    unknown launch is taken to be the first event in the file. gap0: rows that touch have a gap of
    zero length.
    """
    del classes
    answer: Answer = {}
    for rank, rows in scoped(job, causes, whole=False).items():
        starts = {row.event: row.ts for row in rows}
        streams: dict[int, list[Row]] = defaultdict(list)
        for row in device_rows(rows, causes | ({"rows"} if "sync" in causes else set())):
            if row.cat in {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}:
                streams[row.stream].append(row)
        for stream, ops in streams.items():
            gaps = _gaps(sorted(ops, key=lambda op: op.ts), starts, causes, job.unit)
            for cause, lengths in gaps.items():
                answer[rank, stream, cause] = _described([gap / job.unit for gap in lengths])
    return answer


def _described(lengths: list[float]) -> Numbers:
    if not lengths:
        return {"idle_time": 0.0, "count": 0}
    quantiles = np.percentile(lengths, [25, 50, 75])
    values = {
        "idle_time": math.fsum(lengths),
        "count": len(lengths),
        "mean": math.fsum(lengths) / len(lengths),
        "min": min(lengths),
        "max": max(lengths),
        "std": stdev(lengths) if len(lengths) > 1 else math.nan,
    } | dict(zip(("25%", "50%", "75%"), map(float, quantiles), strict=True))
    return {name: round(value, 2) for name, value in values.items()}


def _gaps(
    ops: list[Row], starts: dict[int, Any], causes: Causes, unit: int
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"other": []}
    end = ops[0].end
    for op in ops[1:]:
        gap = op.ts - end
        linked = op.partner if op.partner > 0 or "Q28" in causes else -1
        launch = starts.get(linked, -math.inf)
        queued = "kernel_wait" if gap < WAIT * unit else "other"
        cause = "host_wait" if launch > end else queued
        if gap > 0 or (gap == 0 and "gap0" in causes) or (gap < 0 and "Q27" in causes):
            found.setdefault(cause, []).append(gap)
        end = op.end if "Q27" in causes else max(end, op.end)
    return found
