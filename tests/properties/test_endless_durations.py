"""Events with impossible durations or sizes affect no other event, and sums fit into 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.ingestion import linking

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

Event = dict[str, Any]
DAY_US = 86_400 * 10**6
STREAMS = 60


def operation(number: int, days: float) -> list[Event]:
    """Return an operator, its launch, its kernel and a copy that take days, on separate lanes."""
    ts, dur = number * 10.0, days * DAY_US
    host: Event = {"ph": "X", "pid": 1, "tid": 100 + number}
    device: Event = {"ph": "X", "pid": 0, "tid": number}
    lane = {"device": 0, "stream": number}
    name = "gemm" if number % 3 else "ncclDevKernel_AllReduce"
    return [
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": ts, "dur": dur},
        {
            **host,
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "ts": ts + 1,
            "dur": dur / 2,
            "args": {"correlation": number + 1},
        },
        {
            **device,
            "cat": "kernel",
            "name": name,
            "ts": ts + 2,
            "dur": dur,
            "args": {**lane, "correlation": number + 1},
        },
        {
            **device,
            "cat": "gpu_memcpy",
            "name": "Memcpy HtoD",
            "ts": ts + 3 + dur,
            "dur": dur / 2,
            "args": {**lane, "bytes": 1 << 40},
        },
    ]


def steps(days: float) -> list[Event]:
    """Return three steps of the given length."""
    return [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{step}",
            "pid": 1,
            "tid": 1,
            "ts": step * days * DAY_US,
            "dur": days * DAY_US,
        }
        for step in range(3)
    ]


def test_operators_of_years_are_set_aside(ingest_trace: Callable[..., TraceStore]) -> None:
    """Operations that last for years are quarantined, and one of a millisecond is measured."""
    long = [event for n in range(STREAMS) for event in operation(n, 3650 + n * 60)]
    good: Event = {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": 0,
        "dur": 1000,
    }
    store = ingest_trace([*long, good | {"args": {"device": 0, "stream": 7}}])
    assert store.sql("SELECT count(*) FROM quarantine").rows() == [(4 * STREAMS,)]
    assert store.run("temporal_breakdown").arrow()["compute_ns"].to_pylist() == [1_000_000]


def test_the_longest_that_are_kept_break_no_analysis(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """Every analysis returns a result for many operations that last just under the maximum."""
    events = [*steps(10), *(event for n in range(STREAMS) for event in operation(n, 10.4))]
    store = ingest_trace({0: events, 1: events})
    assert store.sql("SELECT count(*) FROM quarantine").rows() == [(0,)]
    for analysis in store.library.newest_by_topic():
        store.run(analysis.base_name).df()


def test_all_of_them_together_have_a_limit(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace whose total duration overflows 64 bits is refused with an error naming its file."""
    monkeypatch.setattr(linking, "MAX_YEARS", 1 / 365.25)
    assert ingest_trace(operation(0, 0.33)).ranks() == [0]
    with pytest.raises(hta_sql.TraceError, match=r"events-1-rank0\.json.*add up to"):
        ingest_trace(operation(0, 0.34), store="other.store")
    assert not list((tmp_path / "other.store").glob("manifest.json"))


@pytest.mark.parametrize("size", [1 << 62, -(1 << 63), (1 << 50) + 1])
def test_a_size_beyond_any_memory_is_none(
    ingest_trace: Callable[..., TraceStore], size: int
) -> None:
    """An impossible size is NULL in its column, and event_args keeps the recorded value."""
    args = {"Bytes": size, "Total Allocated": size, "Device Type": 1, "Device Id": 0, "Addr": 1}
    event: Event = {"ph": "i", "s": "t", "pid": 1, "tid": 1, "name": "[memory]", "args": args}
    good = event | {"ts": 2, "args": args | {"Bytes": 1 << 50}}
    store = ingest_trace([event | {"ts": 1, "cat": "cpu_instant_event"}, good])
    rows = store.sql("SELECT bytes FROM memory_events ORDER BY ts").rows()
    assert rows == [(None,), (1 << 50,)]
    left = "SELECT args ->> 'Bytes' FROM event_args ORDER BY event_id"
    assert store.sql(left).rows()[0] == (str(size),)
    for name in ("memory_leaks", "memory_by_operator", "operator_table"):
        store.run(name).df()
