"""Sweeps count any number of concurrent operations: 5,000 kernels, collectives and copies on each of two devices.

Most of them run alone for a while, 4,096 per device and 8,192 per rank: counters of 10 or 13 bits would read 0 there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.macros import engine_with
from tests.shared_stores import ingest_only

DEVICES = (0, 1)
EARLY, ALL = 4_096, 5_000
"""Operations of a device that start at once, and with those that start later."""

US = 1_000

COMPUTE_NS = (EARLY * 500 + (ALL - EARLY) * 200) * US
"""Summed duration of the computation kernels of a device: 100-600 and 400-600 µs."""

COLLECTIVE_NS = (EARLY * 500 + (ALL - EARLY) * 250) * US
"""Summed duration of its collectives: 200-700 and 400-650 µs."""

GROUP = {
    "Collective name": "allreduce",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "Group size": 2,
    "dtype": "Float",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
}


def many(
    cat: str, name: str, device: int, early: tuple[int, int], late: tuple[int, int], **args: Any
) -> Iterator[dict[str, Any]]:
    """Yield the operations of a device, each on its own stream; early and late are from and to [µs]."""
    for number in range(ALL):
        start, end = early if number < EARLY else late
        where = {"device": device, "stream": number}
        yield {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": device,
            "tid": number,
            "ts": 1_000_000 + start,
            "dur": end - start,
            "args": where | args,
        }


def events() -> Iterator[dict[str, Any]]:
    """Yield the events of one step of 1,000 µs."""
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 100, "tid": 100}
    yield step | {"ts": 1_000_000, "dur": 1000}
    for device in DEVICES:
        launch = {"blocks per SM": 0.5 / EARLY, "est. achieved occupancy %": 40}
        yield from many("kernel", "gemm", device, (100, 600), (400, 600), **launch)
        yield from many(
            "kernel",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            device,
            (200, 700),
            (400, 650),
            **GROUP,
        )
        yield from many(
            "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", device, (750, 850), (800, 850)
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the trace."""
    folder = tmp_path_factory.mktemp("many")
    trace: Path = folder / "rank0.json"
    trace.write_text(json.dumps({"traceEvents": list(events())}), encoding="utf-8")
    ingest_only({0: str(trace)}, folder / "job.store", run="run", jobs=1)
    with hta_sql.open(folder / "job.store") as opened:
        yield opened


def of(store: hta_sql.TraceStore, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of an analysis."""
    return [tuple(row[column] for column in columns) for row in store.run(name).records()]


def test_utilization_of_each_device(store: hta_sql.TraceStore) -> None:
    """Kernels run from 100 to 700 µs, copies from 750 to 850 µs, on both devices."""
    shares = ("recorded_ns", "kernel_ns", "utilization_pct", "busy_pct")
    assert of(store, "gpu_summary", "device", *shares) == [
        (device, 1000 * US, 600 * US, 60.0, pytest.approx(70.0)) for device in DEVICES
    ]


def test_efficiency_of_each_device(store: hta_sql.TraceStore) -> None:
    """Half a block per multiprocessor runs from 100 to 400 µs, then more; all computation knows its occupancy."""
    known = 100 * COMPUTE_NS / (COMPUTE_NS + COLLECTIVE_NS)
    # Values are rounded to millionths of a block per kernel.
    blocks = (round(1e6 * 0.5 / EARLY) * (EARLY * 300 + ALL * 200)) / 1e6 / 1000 * 100
    columns = ("sm_efficiency_pct", "sm_known_pct", "occupancy_pct", "occupancy_known_pct")
    assert of(store, "gpu_summary", *columns) == [
        pytest.approx((blocks, known, 40.0, known)) for _ in DEVICES
    ]


def test_parts_of_the_step(store: hta_sql.TraceStore) -> None:
    """Computation covers 100-600 µs; a collective is exposed until 700 µs, and copies from 750 to 850 µs."""
    columns = ("compute_ns", "exposed_unmatched_ns", "exposed_wait_ns", "exposed_memory_ns")
    idle = ("idle_before_ns", "idle_between_ns", "idle_after_ns")
    assert of(store, "step_accounting", *columns, *idle) == [
        tuple(US * us for us in (500, 100, 0, 100, 100, 50, 150))
    ]


def test_roles_in_the_step(store: hta_sql.TraceStore) -> None:
    """The step has 500 µs of kernels, 100 µs of copies and 100 µs of exposed communication."""
    columns = ("kernel_ns", "memcpy_ns", "memset_ns", "communication_ns")
    assert of(store, "step_breakdown", *columns) == [(500 * US, 100 * US, 0, 100 * US)]


def test_cost_of_the_group(store: hta_sql.TraceStore) -> None:
    """The group communicates from 200 to 700 µs, of which the last 100 µs are exposed."""
    columns = (
        "part",
        "communication_ns",
        "overlapped_ns",
        "exposed_unmatched_ns",
        "exposed_shared_ns",
    )
    assert of(store, "process_group_costs", *columns) == [
        ("group", 500 * US, 400 * US, 100 * US, 0)
    ]


def test_blocking_time_of_the_group(store: hta_sql.TraceStore) -> None:
    """The exposed time is that of process_group_costs."""
    assert of(store, "blocking_communication", "part", "exposed_ns") == [("group", 100 * US)]


@pytest.mark.parametrize("count", [1023, 1024, 8192, 100_000])
def test_counters_of_a_sweep(count: int) -> None:
    """However many pieces run at once, each layer is found, and counters have the sum of the pieces."""
    con = engine_with(("counted_segments",))
    con.execute(
        "CREATE TABLE pieces AS "
        "SELECT 7 AS lane, 0::BIGINT AS ts, k.layer AS end_ts, k.layer::INTEGER AS layer, 0 AS count_1, 0 AS count_2 "
        "FROM range(1, 9) AS k(layer), range($1) UNION ALL SELECT 7, 0, 8, 0, 1, 3 FROM range($1)",
        [count],
    )
    found = con.execute("FROM lib.counted_segments('pieces') ORDER BY ts").fetchall()
    running = [
        (7, layer - 1, 1, layer, 256 - 2 ** (layer - 1), count, 3 * count, 1)
        for layer in range(1, 9)
    ]
    assert found == [*running, (7, 8, 0, 0, 0, 0, 0, 2)]


def test_equal_intervals_are_one_island() -> None:
    """Thousands of equal intervals form one island, in whichever order several threads sort them."""
    con = engine_with(("merged_intervals",))
    con.execute("SET threads = 2")
    con.execute(
        "CREATE TABLE spans AS SELECT {'run': 'a', 'rank': range % 2} AS lane, 100::BIGINT AS ts, 500::BIGINT AS dur FROM range(20000)"
    )
    for _ in range(20):
        found = con.execute("SELECT ts, dur, span_count FROM lib.merged_intervals('spans')")
        assert found.fetchall() == [(100, 500, 10_000)] * 2
