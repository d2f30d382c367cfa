"""Tests of the clock skew between a device and its host.

The skew is estimated, reported, and corrected in the critical path.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.critical_path import critical_path
from hta_sql.overlay.critical_path import overlay_critical_path
from hta_sql.synthetic import JobSpec, write_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

Event = dict[str, Any]

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}

SKEW = "SELECT lowest_ns, highest_ns, skew_ns FROM lib.device_clock_skew(NULL, NULL)"


def call(name: str, ts: float, dur: float, correlation: int) -> Event:
    """Return a runtime call on the host, with times in µs."""
    about = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1}
    return {**about, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


def kernel(ts: float, dur: float, correlation: int) -> Event:
    """Return the kernel that a call launches, with times in µs."""
    about = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": ts, "dur": dur}
    return {**about, "args": {"device": 0, "stream": 7, "correlation": correlation}}


def sleeping_host(skew_us: float, *, synchronizes: bool) -> list[Event]:
    """Return two kernels; the host sleeps for a second before it launches the second one."""
    about = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    events = [
        {**about, "name": "aten::mm", "ts": 1000, "dur": 20},
        call("cudaLaunchKernel", 1005, 6, 1),
        kernel(1012 + skew_us, 90_000, 1),
        {**about, "name": "sleep", "ts": 1030, "dur": 1_000_000},
        {**about, "name": "aten::mm", "ts": 1_001_040, "dur": 20},
        call("cudaLaunchKernel", 1_001_045, 6, 2),
        kernel(1_001_052 + skew_us, 10_000, 2),
    ]
    if synchronizes:
        events.append(call("cudaDeviceSynchronize", 1_001_100, 9_955, 3))
    return events


def shares(store: TraceStore) -> dict[str, float]:
    """Return the percentage of the critical path for each bound."""
    graph = critical_path(store, 0)
    assert graph is not None
    return {part["bound_by"]: part["path_pct"] for part in graph.path_parts()}


@pytest.mark.parametrize("skew_us", [-50, 0, 50])
def test_a_planted_skew_is_found(
    skew_us: int, ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """A planted skew is estimated to within 2 µs, and equal clocks give exactly 0."""
    job = write_job(tmp_path / "job", JobSpec(ranks=1, steps=2, gzip=True))
    trace = json.loads(gzip.decompress(job.files[0].read_bytes()))
    for event in trace["traceEvents"]:
        if event.get("cat") in DEVICE:
            event["ts"] += skew_us
    path = tmp_path / "skewed.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    with ingest_trace({0: path}) as store:
        ((_, _, skew),) = store.sql(SKEW).rows()
        assert abs(skew - 1000 * skew_us) <= 2000
        assert skew_us or skew == 0
        assert store.run("rank_health").arrow().column("device_skew_ns").to_pylist() == [skew]


@pytest.mark.parametrize(
    ("skew_us", "synchronizes", "bounds"),
    [
        # From launch to kernel are 7 µs, and from the last kernel to the return of the call 3 µs.
        (-50, True, (-53_000, -43_000, -48_000)),
        (50, True, (47_000, 57_000, 52_000)),
        (-50, False, (None, -43_000, -43_000)),
        # Without a synchronization, a device clock that is ahead looks like slow launches.
        (50, False, (None, 57_000, 0)),
        (0, True, (-3_000, 7_000, 0)),
    ],
)
def test_launches_and_synchronizations_bound_the_skew(
    skew_us: int,
    synchronizes: bool,
    bounds: tuple[int | None, int, int],
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """Launches bound the skew from one side, and synchronizations from the other."""
    with ingest_trace(sleeping_host(skew_us, synchronizes=synchronizes)) as store:
        assert store.sql(SKEW).rows() == [bounds]


@pytest.mark.parametrize("synchronizes", [False, True])
@pytest.mark.parametrize("skew_us", [-50, -21, 0, 50])
def test_the_path_says_that_the_host_slept(
    skew_us: int, synchronizes: bool, ingest_trace: Callable[..., TraceStore]
) -> None:
    """For any device clock skew, the path attributes 1 s of 1.01 s to the sleeping host."""
    with ingest_trace(sleeping_host(skew_us, synchronizes=synchronizes)) as store:
        parts = shares(store)
    assert parts["cpu_bound"] > 98
    assert parts.get("gpu_kernel_kernel_overhead", 0) == 0
    assert parts["gpu_compute_bound"] == pytest.approx(0.99, abs=0.01)


def test_contradicting_bounds_tell_no_skew_and_keep_launches(
    ingest_trace: Callable[..., TraceStore],
) -> None:
    """If launches and synchronizations contradict each other, no skew is estimated.

    No launch delay is negative either.
    """
    events = sleeping_host(50, synchronizes=True)
    behind = [
        call("cudaLaunchKernel", 12_000, 6, 9),
        {**kernel(2000, 5, 9), "tid": 8, "args": {"device": 0, "stream": 8, "correlation": 9}},
    ]
    with ingest_trace([*events, *behind]) as store:
        assert store.sql(SKEW).rows() == [(47_000, -10_000_000, None)]
        edges = store.run("critical_path_edges", include_launch_edges=True).arrow().to_pylist()
        launched = [e for e in edges if e["edge_type"] == "kernel_launch_delay"]
        assert len(launched) == 3
        assert all(e["weight_ns"] >= 0 for e in edges)


@pytest.mark.parametrize("scale", [1, 10, 1_000])
@pytest.mark.parametrize(("early_us", "skew_ns"), [(63, -8_000), (83, None)])
def test_bounds_may_cross_by_twenty_launches(
    scale: int, early_us: int, skew_ns: int | None, ingest_trace: Callable[..., TraceStore]
) -> None:
    """A launch takes 6 µs; bounds that cross by 110 µs are a drift, and by 130 µs wrong links."""
    launch = call("cudaLaunchKernel", 12_000, 6, 9)
    early = {**kernel(12_000 - early_us, 5, 9), "tid": 8}
    early["args"] = {"device": 0, "stream": 8, "correlation": 9}
    events = [*sleeping_host(50, synchronizes=True), launch, early]
    longer = [{**e, "ts": scale * e["ts"], "dur": scale * e["dur"]} for e in events]
    with ingest_trace(longer) as store:
        ((_, highest_ns, found_ns),) = store.sql(SKEW).rows()
    assert highest_ns == -1_000 * early_us * scale
    assert found_ns == (None if skew_ns is None else skew_ns * scale)


def test_arrows_are_drawn_at_the_events_of_the_trace(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """An arrow to a kernel ends inside that kernel, on the device's clock."""
    with ingest_trace(sleeping_host(-50, synchronizes=True)) as store:
        graph = critical_path(store, 0)
        assert graph is not None
        edges = [e for e in graph.critical_path_edges if e.type.value.endswith("launch_delay")]
        written = overlay_critical_path(store, graph, edges, folder=tmp_path, only_critical=False)
    events = json.loads(gzip.decompress(Path(written.path).read_bytes()))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    heads = [e for e in events if e["ph"] == "f"]
    assert heads
    assert all(any(k["ts"] <= e["ts"] <= k["ts"] + k["dur"] for k in kernels) for e in heads)
