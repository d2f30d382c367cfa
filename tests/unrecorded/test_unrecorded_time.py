"""Device work that a trace lacks is detected, as jobs with known operations confirm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hta_sql.store.query.trace_store import TraceStore
from tests.unrecorded.cut_recording import (
    CALL_US,
    LATENCY_US,
    Operation,
    Recording,
    record,
    run_operations,
    training_launches,
)

Ingest = Callable[..., TraceStore]

PARTS = (
    *("compute_ns", "exposed_transfer_ns", "exposed_unmatched_ns"),
    *("exposed_wait_ns", "exposed_memory_ns"),
    *("unrecorded_before_ns", "unrecorded_lost_ns", "unrecorded_after_ns"),
    *("idle_before_ns", "idle_between_ns", "idle_after_ns"),
)


def accounting(store: TraceStore) -> dict[str, Any]:
    """Return the only row of step_accounting for a trace without steps, and check its sum."""
    (row,) = store.run("step_accounting").records()
    assert sum(row[part] or 0 for part in PARTS) == row["step_ns"]
    return row


def intervals(store: TraceStore, kind: str) -> list[tuple[int, int]]:
    """Return the start and end of each interval of a kind [ns]."""
    query = "SELECT ts, ts + dur FROM unrecorded_time WHERE kind = $kind ORDER BY ts"
    return [(start, end) for start, end in store.sql(query, {"kind": kind}).rows()]


def busy_before(share: float, window: int = 10_000) -> tuple[list[Operation], Recording]:
    """Return the operations and the recording of a window that begins with earlier work.

    The earlier work fills the given share of the window. The host launches from the start of the
    recording on.
    """
    start = 5_000
    earlier = int(share * window)
    launches = [(start - 1_000, 7, 1_000 - CALL_US - LATENCY_US + earlier)] if earlier else []
    launches += [(start + 50 + 100 * n, 7, 30) for n in range(80)]
    operations = run_operations(launches)
    return operations, record(operations, start, start + window)


@pytest.mark.parametrize("share", [0.3, 0.95])
def test_earlier_work_is_unrecorded_while_a_recorded_operation_waits(
    share: float, ingest_trace: Ingest
) -> None:
    """While the first recorded operation is queued behind earlier work, the time is unrecorded."""
    _, recording = busy_before(share)
    store = ingest_trace(recording.events)
    assert intervals(store, "before") == [(0, int(share * 10_000_000))]
    assert intervals(store, "before") == recording.unrecorded[:1]
    row = accounting(store)
    assert row["unrecorded_before_ns"] == int(share * 10_000_000)
    assert row["idle_before_ns"] == 0
    assert row["undecided_ns"] == 0


def test_a_device_that_waits_for_its_first_launch_has_no_unrecorded_time(
    ingest_trace: Ingest,
) -> None:
    """Time before the first launch is undecided: the device may be idle or run earlier work."""
    _, recording = busy_before(0.0)
    store = ingest_trace(recording.events)
    assert recording.unrecorded == []
    assert intervals(store, "before") == []
    assert intervals(store, "undecided") == [(0, 1000 * (50 + CALL_US))]
    row = accounting(store)
    assert row["unrecorded_before_ns"] is None
    assert row["undecided_ns"] == 1000 * (50 + CALL_US)
    assert row["idle_before_ns"] == 1000 * (50 + CALL_US + LATENCY_US)


def test_a_synchronization_decides_what_follows_it(ingest_trace: Ingest) -> None:
    """Once the host has waited for the device, no earlier work can be running."""
    _, recording = busy_before(0.0)
    sync = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1}
    events = [*recording.events, sync | {"ts": 5, "dur": 10, "args": {"correlation": 99}}]
    assert intervals(ingest_trace(events), "undecided") == [(0, 15_000)]


def launched_earlier() -> list[dict[str, Any]]:
    """Return events whose first operation, the one with the lowest id, has no recorded launch."""
    _, recording = busy_before(0.0)
    early = {"ph": "X", "cat": "kernel", "name": "early", "pid": 0, "tid": 7, "ts": 20, "dur": 10}
    return [*recording.events, early | {"args": {"correlation": 5, "device": 0, "stream": 7}}]


def test_an_operation_launched_before_the_first_recorded_call_was_queued_from_then_on(
    ingest_trace: Ingest,
) -> None:
    """An operation without a launch was queued by the time of the first call, perhaps earlier."""
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGetDevice", "pid": 1, "tid": 1}
    events = [*launched_earlier(), call | {"ts": 5, "dur": 1, "args": {"correlation": 99}}]
    store = ingest_trace(events)
    assert intervals(store, "before") == [(5_000, 20_000)]
    assert intervals(store, "undecided") == [(0, 5_000)]
    row = accounting(store)
    assert (row["unrecorded_before_ns"], row["undecided_ns"]) == (15_000, 5_000)


def test_an_operation_that_started_before_the_first_recorded_call_tells_nothing(
    ingest_trace: Ingest,
) -> None:
    """An operation without a launch may have been launched just before it started."""
    store = ingest_trace(launched_earlier())
    assert intervals(store, "before") == []
    assert intervals(store, "undecided") == [(0, 20_000)]


def test_waiting_for_an_event_of_another_stream_is_not_earlier_work(ingest_trace: Ingest) -> None:
    """Earlier work is not assumed while a stream may be waiting for a recorded operation."""
    launches = [(10, 7, 900), (30, 20, 10), (1_200, 7, 10), (1_300, 20, 10)]
    operations = run_operations(launches)
    late = Operation(1, 20, 30, operations[0].end, 10)
    recording = record([operations[0], late, *operations[2:]], 0, 2_000)
    assert intervals(ingest_trace(recording.events), "before") == []


@pytest.mark.parametrize("count", [12, 68])
def test_launches_in_a_row_without_kernels_are_lost_work(count: int, ingest_trace: Ingest) -> None:
    """A gap in which launches have no kernels counts as lost work, not as idle time."""
    operations = run_operations([(20 * n, 7, 20) for n in range(200)])
    dropped = range(100, 100 + count)
    recording = record(operations, 0, 6_000, dropped=dropped)
    store = ingest_trace(recording.events)
    (first, last) = operations[100], operations[99 + count]
    assert intervals(store, "lost") == [(1000 * first.start, 1000 * last.end)]
    assert intervals(store, "lost") == recording.unrecorded
    row = accounting(store)
    assert row["unrecorded_lost_ns"] == 20_000 * count
    causes = {r["cause"]: r["idle_ns"] for r in store.run("idle_causes").records()}
    assert causes["unrecorded"] == 20_000 * count


def test_kernels_captured_into_a_graph_are_not_lost(ingest_trace: Ingest) -> None:
    """Launches during a graph capture are not lost work, because they run nothing."""
    operations = run_operations([(20 * n, 7, 10) for n in range(200)])
    recording = record(operations, 0, 5_000, dropped=range(100, 130))
    capture = {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1, "dur": 1}
    events = [
        *recording.events,
        capture | {"name": "cudaStreamBeginCapture", "ts": 1_996, "args": {"correlation": 5000}},
        capture | {"name": "cudaStreamEndCapture", "ts": 2_597, "args": {"correlation": 5001}},
    ]
    assert intervals(ingest_trace(events), "lost") == []


def test_work_that_runs_on_when_the_recording_ends_is_unrecorded(ingest_trace: Ingest) -> None:
    """Kernels that were launched in the recording and end after it are unrecorded work."""
    operations = run_operations([(10 * n, 7, 40) for n in range(100)])
    recording = record(operations, 0, 2_000)
    store = ingest_trace(recording.events)
    (after,) = intervals(store, "after")
    assert after == recording.unrecorded[-1]
    row = accounting(store)
    assert row["unrecorded_after_ns"] == after[1] - after[0] > 0
    assert row["idle_after_ns"] == 0


@pytest.mark.parametrize("skew_us", [-50, 50])
def test_a_skewed_clock_of_the_device_is_not_earlier_work(
    skew_us: int, ingest_trace: Ingest
) -> None:
    """A skewed device clock, which shifts all operations alike, is not taken for earlier work."""
    operations = run_operations([(1_000 + 400 * n, 7, 100) for n in range(50)])
    recording = record(operations, 0, 25_000, skew_us=skew_us)
    assert intervals(ingest_trace(recording.events), "before") == []


@pytest.mark.parametrize(
    "seed",
    [
        *range(3),
        *(pytest.param(seed, marks=pytest.mark.slow(reason="fuzz")) for seed in range(3, 12)),
    ],
)
def test_no_interval_covers_idle_time_or_recorded_work(seed: int, ingest_trace: Ingest) -> None:
    """In randomly cut recordings, unrecorded time was busy, and most unrecorded work is found."""
    random = Random(seed)
    pause = random.choice((0, 5, 60))
    launches = training_launches(random, 400, work_us=random.choice((5, 40, 200)), pause_us=pause)
    operations = run_operations(launches)
    start = launches[random.randint(50, 150)][0]
    recording = record(operations, start, operations[-1].end + 100)
    store = ingest_trace(recording.events)
    truth = recording.unrecorded
    for first, last in intervals(store, "before"):
        busy = sum(min(last, b) - max(first, a) for a, b in truth if b > first and a < last)
        # Between two operations of the earlier work the device may pause for a launch.
        assert busy >= 0.9 * (last - first)
    row = accounting(store)
    missed = sum(b - a for a, b in truth) - (row["unrecorded_before_ns"] or 0)
    allowed = row["undecided_ns"] + 1000 * LATENCY_US * len(operations)
    assert missed <= max(allowed, 100_000 + 1000 * LATENCY_US)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_device_is_not_idle_where_its_file_is_cut_off(
    is_cut: bool, ingest_trace: Ingest, tmp_path: Path
) -> None:
    """A profiler writes operators before kernels, so a file that is cut off lacks the last kernels."""
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7}
    events: list[dict[str, Any]] = [operator | {"ts": 100 * n, "dur": 90} for n in range(10)]
    for n in range(10):
        link = {"correlation": n + 1}
        events.append(call | {"ts": 100 * n + 10, "dur": 5, "args": link})
        on_device = {"device": 0, "stream": 7, **link}
        events.append(kernel | {"ts": 100 * n + 20, "dur": 40, "args": on_device})
    text = json.dumps({"traceEvents": events})
    path = tmp_path / "trace.json"
    # Two calls and two kernels are left.
    path.write_text(text[: text.index('"ts": 210')] if is_cut else text, encoding="utf-8")
    store = ingest_trace(path)
    row = accounting(store)
    assert row["compute_ns"] == (80_000 if is_cut else 400_000)
    assert row["idle_after_ns"] == (0 if is_cut else 30_000)
    assert intervals(store, "lost") == ([(160_000, 990_000)] if is_cut else [])
    causes = {found["cause"] for found in store.run("idle_causes").records()}
    assert ("unrecorded" in causes) == is_cut
    saved = [found["saved_ns"] or 0 for found in store.run("advice").records()]
    assert not is_cut or max(saved, default=0) <= 80_000  # idle between the kernels that are left
    assert "unrecorded_lost" not in {found["finding"] for found in store.run("findings").records()}
