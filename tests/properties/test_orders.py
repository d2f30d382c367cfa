"""Each analysis returns its rows in the order that is listed here.

``-`` means descending, and ``=`` means that rows with equal values are adjacent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.library.objects import load_library
from tests.properties.test_recomputed import job
from tests.properties.test_scopes import ANALYSES, SEED, options_of

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["job"]

ORDERS = {
    "aten_op_kernels_and_delay": "run rank -call_count -device_sum_ns operator_name",
    "call_stack_threads": "run rank tree_id thread_id",
    "collective_waits": "run collective_id rank",
    "collectives": "run collective_id rank",
    "cuda_kernel_launch_stats": "run rank",
    "critical_path_edges": "run rank begin_node_id end_node_id edge_type",
    "critical_path_nodes": "run rank node_id",
    "cupti_counters_by_operator": "run rank ts event_id counter",
    "comm_comp_overlap": "run rank",
    "device_type": "run rank",
    "event_arguments": "run rank event_id argument",
    "forward_backward": "run rank",
    "frequent_kernel_sequences": "run rank sequence_id",
    "gpu_kernel_types": "run rank -busy_ns",
    "gpu_kernels_by_name": "run rank class",
    "gpu_kernels_with_user_annotations": "run rank start_ns event_id",
    "gpu_timeline": "run rank device stream",
    "idle_gaps": "run -dur rank device stream ts",
    "idle_causes": "run -idle_ns rank position",
    "idle_time_breakdown": "run rank device stream category",
    "idle_time_stats": "run rank device stream category",
    "kpi_trends": "=kpi job",
    "kernel_counters": "run rank device -busy_ns name event_id counter",
    "kernel_sequence_events": "run rank event_id",
    "live_at_peak": "run rank =device_label -bytes",
    "memory_allocations": "run rank device_type device",
    "memory_curve": "run rank device_type device ts",
    "memory_by_operator": "run rank device_type device -self_allocated_bytes -allocated_bytes",
    "memory_peaks": "run rank =device_label",
    "memory_bandwidth_series": "run rank device name ts",
    "memory_bandwidth_summary": "run rank device name",
    "ops_by_name": "run -sum_ns",
    "potential_stragglers": "run rank",
    "profiler_steps": "run rank ts event_id",
    "queue_full_time": "run rank device stream",
    "queue_length_series": "run rank device stream ts",
    "queue_length_summary": "run rank device stream",
    "rank_clocks": "run rank",
    "rank_health": "run rank",
    "step_accounting": "run rank step",
    "step_contents": "run -self_ns rank",
    "straggler_metric": "run step rank",
    "stragglers": "run rank",
    "temporal_breakdown": "run rank",
    "timeline": "run rank",
    "trace_events": "run rank event_id",
    "user_annotation_breakdown": "run rank",
}
"""Analysis ─▶ its sort key; analyses that are not listed are sorted by run."""


def place_of(row: dict[str, Any], order: str) -> list[tuple[bool, Any]]:
    """Return the sort key of a row, with NULL last."""
    values = [(row[key.removeprefix("-")], key.startswith("-")) for key in order.split()]
    return [(value is None, 0 if value is None else -value if turned else value)
        for value, turned in values]  # fmt: skip


def together(rows: list[dict[str, Any]], before: list[str], key: str) -> list[dict[str, Any]]:
    """Add the position at which the value of ``=key`` first appears among rows equal ``before``."""
    seen: dict[tuple[Any, ...], dict[Any, int]] = {}
    numbered = []
    for row in rows:
        values = seen.setdefault(tuple(row[name] for name in before), {})
        numbered.append(row | {key: values.setdefault(row[key[1:]], len(values))})
    return numbered


def check_order(store: TraceStore, name: str) -> None:
    """Query an analysis, and check the order of its rows."""
    rows = store.run(name, **options_of(name)).arrow().to_pylist()
    if rows and (name in ORDERS or "run" in rows[0]):
        order = ORDERS.get(name, "run")
        before: list[str] = []
        for key in order.split():
            if key.startswith("="):
                rows = together(rows, before, key)
            before.append(key)
        assert rows == sorted(rows, key=lambda row: place_of(row, order))


@pytest.mark.parametrize("job", [SEED], indirect=True)
@pytest.mark.parametrize("name", ANALYSES)
def test_rows_come_in_order(job: tuple[int, TraceStore], name: str) -> None:
    """Each analysis returns its rows in the listed order."""
    check_order(job[1], name)


def test_what_is_listed_is_there() -> None:
    """Each listed name is an analysis that has the listed columns."""
    for name, order in ORDERS.items():
        columns = {column.name for column in load_library().find(name).columns}
        assert {key.lstrip("-=") for key in order.split()} <= columns, name
