"""Tests that compare queue length and bandwidth with naive computations from their definition."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import hta_sql
from tests.examples import examples

Op = tuple[int, int | None, int, int, int | None]
"""Stream, launch time, start, duration [ns], and bytes of a copy."""

ops = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.none() | st.integers(0, 30),
        st.integers(0, 30),
        st.integers(0, 8),
        st.none() | st.integers(0, 50),
    ),
    min_size=1,
    max_size=25,
)


def write(path: Path, all_ops: list[Op]) -> None:
    """Write a trace of copies and their launches.

    Its first event starts at 0, so that times in the store equal those in the trace.
    """
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "cpu_op", "name": "first", "pid": 1, "tid": 1, "ts": 0, "dur": 100}
    ]
    for number, (stream, launch, start, dur, size) in enumerate(all_ops):
        args: dict[str, Any] = {"device": 0, "stream": stream, "correlation": number + 1}
        if size is not None:
            args |= {"bytes": size, "memory bandwidth (GB/s)": size / 10}
        common = {"ph": "X", "pid": 0, "tid": stream, "dur": dur / 1000}
        name = "Memcpy HtoD (Pinned -> Device)"
        events.append(
            {**common, "cat": "gpu_memcpy", "name": name, "ts": start / 1000, "args": args}
        )
        if launch is not None:
            call = {"cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": launch / 1000}
            events.append({**common, **call, "pid": 1, "args": {"correlation": number + 1}})
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def changes(values: dict[int, Any], before: Any) -> list[tuple[int, Any]]:
    """Return the times at which a value changes, together with the new value."""
    points = []
    for moment in sorted(values):
        if values[moment] != before:
            points.append((moment, values[moment]))
            before = values[moment]
    return points


def naive_queue(mine: list[Op]) -> list[tuple[int, int]]:
    """Return the changes of the number of operations that are launched but have not started."""
    waits = [(min(launch, start), start) for _, launch, start, _, _ in mine if launch is not None]
    moments = {moment for wait in waits for moment in wait}
    return changes({t: sum(a <= t < b for a, b in waits) for t in moments}, 0)


def naive_bandwidth(all_ops: list[Op]) -> list[tuple[int, tuple[int, Any, Any]]]:
    """Return the changes of the total known bandwidth of the running copies."""
    copies = [(start, start + (dur or 1000), size) for _, _, start, dur, size in all_ops]
    values = {}
    for moment in {moment for copy in copies for moment in copy[:2]}:
        running = [(b - a, size) for a, b, size in copies if a <= moment < b]
        known = [(dur, size) for dur, size in running if size is not None]
        recorded = sum(Fraction(size, 10) for _, size in known)
        computed = sum(Fraction(size * 10**9 // dur, 10**9) for dur, size in known)
        unknown = running and not known
        values[moment] = (
            len(running),
            None if unknown else float(recorded),
            None if unknown else float(computed),
        )
    return changes(values, None)


ASKED: dict[str, dict[str, Any]] = {
    "queue_length_series": {},
    "queue_full_time": {"max_queue_length": 2},
    "queue_length_summary": {},
    "memory_bandwidth_series": {},
    "memory_bandwidth_summary": {},
}

Rows = list[dict[str, Any]]


@settings(max_examples=examples(2), deadline=None)
@given(st.lists(ops, min_size=6, max_size=6))
def test_series_are_what_their_definition_says(ranks: list[list[Op]]) -> None:
    """Both series match their definition for ties, skew, missing launches and unknown bytes."""
    with TemporaryDirectory() as folder:
        for rank, all_ops in enumerate(ranks):
            write(Path(folder, f"rank{rank}.json"), all_ops)
        with hta_sql.ingest(folder, Path(folder, "job.store"), jobs=1) as store:
            found = {
                name: store.run(name, **options).arrow().to_pylist()
                for name, options in ASKED.items()
            }
    for rank, all_ops in enumerate(ranks):
        own = {name: [row for row in rows if row["rank"] == rank] for name, rows in found.items()}
        check_queues(all_ops, own)
        check_bandwidth(all_ops, own)


def check_queues(all_ops: list[Op], answers: dict[str, Rows]) -> None:
    """Compare the queue lengths of a rank with the naive computation."""
    points = defaultdict(list)
    for row in answers["queue_length_series"]:
        points[row["stream"]].append((row["ts"], row["queue_length"]))
    for stream in {op[0] for op in all_ops}:
        want = naive_queue([op for op in all_ops if op[0] == stream])
        assert points[stream] == want
        steps = [(b - a, n) for (a, n), (b, _) in pairwise(want)]
        (described,) = [row for row in answers["queue_length_summary"] if row["stream"] == stream]
        assert described["waiting_ns"] == sum(dur for dur, n in steps if n)
        weighted = sum(dur * n for dur, n in steps)
        mean = weighted / sum(dur for dur, _ in steps) if steps else None
        assert described["time_mean"] == mean
        full = [row["full_ns"] for row in answers["queue_full_time"] if row["stream"] == stream]
        assert full == ([sum(dur for dur, n in steps if n >= 2)] if want else [])


def check_bandwidth(all_ops: list[Op], answers: dict[str, Rows]) -> None:
    """Compare the bandwidths of a rank with the naive computation."""
    series = answers["memory_bandwidth_series"]
    keys = ("running_count", "bandwidth_gbps", "computed_gbps")
    rates = [(row["ts"], tuple(row[key] for key in keys)) for row in series]
    assert rates == naive_bandwidth(all_ops)
    assert rates[-1][1] == (0, 0.0, 0.0)
    recorded = changes({ts: values[1] for ts, values in rates}, 0)
    (total,) = answers["memory_bandwidth_summary"]
    assert total["point_count"] == sum(bool(value) for _, value in recorded)
    assert total["copy_count"] == len(all_ops)
