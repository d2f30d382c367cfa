"""The slowdown of a production job matches the figures that were published with its data.

The job and its figures are not part of this project; the tests are skipped if they are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import hta_sql
from hta_sql.store.query.trace_store import TraceStore
from tests.production_job import PRODUCTION, needs_production, write_traces

TOLERANCE = 0.03

KERNELS = {
    "forward-compute": "forward_compute_kernel",
    "backward-compute": "backward_compute_kernel",
    "embedding-grads-all-reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "grads-reduce-scatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "params-all-gather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "optimizer": "optimizer_kernel",
    "optimizer-clip-main-grad": "optimizer_clip_main_grad_kernel",
}
"""Published kind of operation ─▶ kernel name."""

pytestmark = [
    pytest.mark.slow(reason="large"),
    needs_production,
]


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """Return the published figures."""
    figures: dict[str, Any] = json.loads((PRODUCTION / "result-ST.json").read_text())
    return figures


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Convert and ingest all steps of the job."""
    folder = tmp_path_factory.mktemp("production")
    with hta_sql.ingest(write_traces(folder / "traces"), folder / "job.store") as opened:
        yield opened


def slowdowns(store: TraceStore, kind: str) -> dict[str, float]:
    """Return the slowdown of each part of a given kind, such as a stage."""
    rows = store.run("slowdown_parts").arrow().to_pylist()
    return {row["part"]: row["slowdown"] for row in rows if row["part_kind"] == kind}


def test_the_slowdown_is_the_published_one(store: TraceStore, published: dict[str, Any]) -> None:
    """The ratio of the recorded time to the time with uniform durations is as published."""
    rows = {row["scenario"]: row for row in store.run("what_if").arrow().to_pylist()}
    uniform = rows["uniform"]
    slowdown = uniform["recorded_ns"] / uniform["replayed_ns"]
    assert slowdown == pytest.approx(published["blocking_slowdown"], rel=TOLERANCE)


def test_stages_are_as_slow_as_published(store: TraceStore, published: dict[str, Any]) -> None:
    """The slowdown of each stage is as published, and stage 3 is the slowest."""
    found = slowdowns(store, "stage")
    expected = published["blocking_decompose_by_stage"]
    assert found == pytest.approx(expected, rel=TOLERANCE)
    assert max(found, key=lambda stage: found[stage]) == "3"


def test_data_parallel_ranks_are_as_slow_as_published(
    store: TraceStore, published: dict[str, Any]
) -> None:
    """The slowdown of each data-parallel rank is as published."""
    expected = published["blocking_decompose_by_dp_rank"]
    assert slowdowns(store, "data-parallel rank") == pytest.approx(expected, rel=TOLERANCE)


def test_kinds_of_operations_are_as_slow_as_published(
    store: TraceStore, published: dict[str, Any]
) -> None:
    """The slowdown of each kind of operation is as published."""
    found, expected = slowdowns(store, "operation"), published["blocking_decompose_by_optype"]
    for kind, kernel in KERNELS.items():
        assert found[kernel] == pytest.approx(expected[kind], rel=TOLERANCE), kind
