"""Tests of the usual length of a launch, and of answers that count in launches.

If all times of a trace are multiplied, such answers are multiplied too, and shares and rules stay.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.synthetic import JobSpec, write_job
from tests.advice_steps import delayed, gaps
from tests.laws.changes import dilated as change_dilated
from tests.laws.jobs import Job, read_trace
from tests.laws.jobs import write_job as write_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

Event = dict[str, Any]

LENGTHS = "SELECT rank, launch_ns FROM lib.launch_lengths(NULL, NULL)"
SCALE = 1_000


def launched(correlation: int, launch_us: float, *kernels_us: float) -> list[Event]:
    """Return a launch call and its kernels, which run one after another."""
    ts = 1_000 * correlation
    args = {"correlation": correlation}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7}
    on_device = args | {"device": 0, "stream": 7}
    return [
        call | {"ts": ts, "dur": launch_us, "args": args},
        *(
            kernel | {"ts": ts + 100 * number, "dur": us, "args": on_device}
            for number, us in enumerate(kernels_us, 1)
        ),
    ]


def dilated(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace with all times multiplied."""
    events = [
        event | {key: event[key] * SCALE for key in ("ts", "dur") if key in event}
        for event in trace["traceEvents"]
    ]
    return trace | {"traceEvents": events}


@pytest.mark.parametrize(
    ("launches", "expected_ns"),
    [
        # A tenth of the launches are not longer; the long ones wait for space in a queue.
        ([launched(n, 4 if n < 3 else 500, 20) for n in range(1, 21)], 4_000),
        # A graph counts as one launch, whatever the number of its kernels.
        ([launched(1, 900, *[5] * 9), *(launched(n, 6, 20) for n in range(2, 6))], 6_000),
        # Without lengths of launches, kernels count.
        ([launched(n, 0, 20 + n) for n in range(1, 5)], 21_000),
    ],
)
def test_the_usual_length_is_that_of_the_shortest_tenth(
    launches: list[list[Event]], expected_ns: int, ingest_trace: Callable[..., TraceStore]
) -> None:
    """Launches that wait for the queue, and launches of graphs, do not count."""
    with ingest_trace([event for one in launches for event in one]) as store:
        assert store.sql(LENGTHS).rows() == [(0, expected_ns)]


@pytest.mark.parametrize("step", [gaps(300, 80), delayed(75, 4_000, 1_000)])
def test_gaps_of_a_slower_host_have_the_same_cause(step: Any, tmp_path: Path) -> None:
    """Whether gaps are launches or other work depends on how long launches take."""
    found = []
    for name, trace in (("as recorded", step.trace()), ("dilated", dilated(step.trace()))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(trace), encoding="utf-8")
        with hta_sql.ingest(path, tmp_path / name) as store:
            rows = store.run("advice").records()
        found.append({row["rule"]: (row["event_count"], row["saved_ns"]) for row in rows})
    plain, slow = found
    assert plain.keys() & {"launch_bound", "host_work"}
    assert slow == {rule: (count, SCALE * ns) for rule, (count, ns) in plain.items()}


def test_a_replay_of_longer_times_predicts_the_same_shares(tmp_path: Path) -> None:
    """What waits for what does not depend on the unit of time."""
    job = write_job(tmp_path / "job", JobSpec(ranks=1, steps=3, gzip=True))
    trace = read_trace(job.files[0])
    assert trace is not None
    recorded = Job("job", {0: trace})
    longer_job = change_dilated(SCALE)(recorded)
    assert longer_job is not None
    replayed = []
    for name, one in (("as recorded", recorded), ("dilated", longer_job.job)):
        paths = write_traces(one, tmp_path / "traces" / name)
        with hta_sql.ingest(paths, tmp_path / name) as store:
            rows = store.run("what_if_faster").records()
            replayed.append({row["part"]: (row["replayed_ns"], row["saved_pct"]) for row in rows})
    plain, longer = replayed
    assert any(pct > 0 for _, pct in plain.values())
    assert longer == {
        part: (pytest.approx(SCALE * ns, abs=2 * SCALE), pytest.approx(pct, abs=1e-3))
        for part, (ns, pct) in plain.items()
    }
