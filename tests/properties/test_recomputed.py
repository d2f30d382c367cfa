"""Analyses agree with simple recomputations on random small jobs."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache, partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.library.objects import load_library
from tests.properties import answers_device as device
from tests.properties import answers_host as host
from tests.properties import answers_memory as memory
from tests.properties import answers_modules as tree_of_modules
from tests.properties import answers_stacks as stacks
from tests.properties import answers_steps as stepped
from tests.properties import answers_time as time
from tests.properties import answers_tree as tree
from tests.properties.naive import Scope, World
from tests.properties.traces import random_job, store_of_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hta_sql.store.query.trace_store import TraceStore

SEEDS = range(int(os.environ.get("HTA_SQL_PROPERTY_JOBS", "2")))
"""Seeds of the jobs, each queried with several scopes. All but the first are slow tests."""

SCOPES = 4

CASES: dict[str, tuple[str, dict[str, Any], Callable[[World, Scope], list[dict[str, Any]]]]] = {
    "queue_length_series": ("queue_length_series", {}, device.queue_length_series),
    "queue_length_summary": ("queue_length_summary", {}, device.queue_length_summary),
    "queue_full_time": (
        "queue_full_time",
        {"max_queue_length": 2},
        partial(device.queue_full_time, max_queue_length=2),
    ),
    "memory_bandwidth_series": ("memory_bandwidth_series", {}, device.memory_bandwidth_series),
    "memory_bandwidth_summary": ("memory_bandwidth_summary", {}, device.memory_bandwidth_summary),
    "kernels_across_ranks": (
        "kernels_across_ranks",
        {"num_kernels": 2},
        partial(device.kernels_across_ranks, num_kernels=2),
    ),
    "launch_histograms": (
        "launch_histograms",
        {"runtime_cutoff_ns": 5000, "launch_delay_cutoff_ns": 3000},
        device.launch_histograms,
    ),
    "temporal_breakdown": ("temporal_breakdown", {}, time.temporal_breakdown),
    "comm_comp_overlap": ("comm_comp_overlap", {}, time.comm_comp_overlap),
    "gpu_kernel_types": ("gpu_kernel_types", {}, time.gpu_kernel_types),
    "gpu_kernels_by_name": (
        "gpu_kernels_by_name",
        {"num_kernels": 2},
        partial(time.gpu_kernels_by_name, num_kernels=2),
    ),
    "cuda_kernel_launch_stats": (
        "cuda_kernel_launch_stats",
        {
            "include_memory_events": False,
            "runtime_cutoff_ns": 5000,
            "launch_delay_cutoff_ns": 3000,
        },
        time.cuda_kernel_launch_stats,
    ),
    **{
        name: (name, {"kernel_wait_below_ns": 4000}, partial(gaps, kernel_wait_below_ns=4000))
        for name, gaps in (
            ("idle_gaps", time.idle_gaps),
            ("idle_time_breakdown", time.idle_time_breakdown),
            ("idle_time_stats", time.idle_time_stats),
        )
    },
    "profiler_steps": ("profiler_steps", {}, host.profiler_steps),
    "aten_op_kernels_and_delay": (
        "aten_op_kernels_and_delay",
        {},
        host.aten_op_kernels_and_delay,
    ),
    "annotations on the device": (
        "user_annotation_breakdown",
        {"num_annotations": 2},
        partial(host.user_annotation_breakdown, use_gpu_annotation=True, num_annotations=2),
    ),
    "annotations on the host": (
        "user_annotation_breakdown",
        {"num_annotations": 3, "use_gpu_annotation": False},
        partial(host.user_annotation_breakdown, use_gpu_annotation=False, num_annotations=3),
    ),
    "gpu_kernels_with_user_annotations": (
        "gpu_kernels_with_user_annotations",
        {},
        host.gpu_kernels_with_user_annotations,
    ),
    "ops_by_name": ("ops_by_name", {}, host.ops_by_name),
    "ops_by_name and shapes": (
        "ops_by_name",
        {"by_shapes": True},
        partial(host.ops_by_name, by_shapes=True),
    ),
    "frequent_kernel_sequences": (
        "frequent_kernel_sequences",
        {"min_pattern_len": 2},
        host.frequent_kernel_sequences,
    ),
    "call_stack": ("call_stack", {"joins_backward": False}, host.call_stack),
    "kernel_sequence_events": (
        "kernel_sequence_events",
        {"min_pattern_len": 1, "top_k": None},
        tree.kernel_sequence_events,
    ),
    "event_stack": (
        "event_stack",
        {"event_ids": [*range(0, 90, 3)], "joins_backward": False},
        partial(tree.event_stack, event_ids=[*range(0, 90, 3)]),
    ),
    "forward_backward": ("forward_backward", {}, tree.forward_backward),
    "folded_stacks": ("folded_stacks", {"min_pct": 0}, stacks.folded_stacks),
    "source_lines": ("source_lines", {"hidden": None}, stacks.source_lines),
    "modules": ("modules", {"expand": True}, tree_of_modules.modules),
    "gpu_timeline": (
        "gpu_timeline",
        {"resolution_ns": 2000},
        partial(tree.gpu_timeline, resolution_ns=2000),
    ),
    "cupti_counters_by_operator": (
        "cupti_counters_by_operator",
        {},
        tree.cupti_counters_by_operator,
    ),
    "straggler_metric": ("straggler_metric", {}, tree.straggler_metric),
    "trace_events": ("trace_events", {}, host.trace_events),
    "step_breakdown": ("step_breakdown", {}, stepped.step_breakdown),
    "step_time_stats": ("step_time_stats", {}, stepped.step_time_stats),
    "gpu_summary": ("gpu_summary", {}, stepped.gpu_summary),
    "kernel_table": ("kernel_table", {}, stepped.kernel_table),
    "memory_peaks": ("memory_peaks", {}, memory.memory_peaks),
    "memory_allocations": ("memory_allocations", {}, memory.memory_allocations),
    "memory_by_operator": ("memory_by_operator", {}, memory.memory_by_operator),
}


@cache
def world(seed: int) -> World:
    """Return the events of a job, linked by slow, simple code."""
    return World(random_job(seed))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(seed, marks=[pytest.mark.slow(reason="fuzz")] if seed else [])
        for seed in SEEDS
    ],
)
def job(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, TraceStore]]:
    """Ingest both runs of a job into one store."""
    with hta_sql.open(store_of_job(tmp_path_factory, request.param), threads=1) as store:
        yield request.param, store


@cache
def expected_rows(seed: int, case: str, scope: int) -> list[dict[str, Any]]:
    """Return the recomputed rows of an analysis for one of the scopes of a job."""
    return CASES[case][2](world(seed), scopes(seed)[scope])


@cache
def scopes(seed: int) -> list[Scope]:
    """Return the default scope, one with the last step, and some random ones."""
    rng = Random(seed)
    found = [Scope(), Scope(include_last_profiler_step=True)]
    while len(found) < SCOPES:
        found.append(
            Scope(
                rng.choice((None, ["a"], ["b.run-2"])),
                rng.choice((None, [1], [0, 3])),
                rng.choice((None, [3], [4, 5])),
                rng.random() < 0.5,
            )
        )
    return found


def comparable(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Return rows as sorted strings, with numbers rounded to nine digits."""

    def cell(value: Any) -> Any:
        return f"{value:.9g}" if isinstance(value, float | int) else value

    return sorted(repr([cell(row[name]) for name in columns]) for row in rows)


def found_rows(
    store: TraceStore, name: str, options: dict[str, Any], scope: Scope
) -> list[dict[str, Any]]:
    """Return the rows of an analysis in a scope; none if a rank or step of the scope is unknown."""
    taken = {parameter.name for parameter in load_library().find(name).parameters}
    wanted = {k: value for k, value in vars(scope).items() if value is not None and k in taken}
    try:
        return list(store.run(name, **options, **wanted).arrow().to_pylist())
    except (hta_sql.ParameterError, hta_sql.RankError) as error:
        assert str(error).startswith(("No rank ", "No step "))  # noqa: PT017 - raised for some scopes only
        return []


@pytest.mark.parametrize("case", CASES)
def test_analysis_is_what_a_recomputation_says(job: tuple[int, TraceStore], case: str) -> None:
    """All rows and columns of an analysis agree with its recomputation."""
    seed, store = job
    name, options, _ = CASES[case]
    for number, scope in enumerate(scopes(seed)):
        expected = expected_rows(seed, case, number)
        found = found_rows(store, name, options, scope)
        if not expected:
            assert not found, (scope, found)
            continue
        columns = list(expected[0])
        assert comparable(found, columns) == comparable(expected, columns), scope


@pytest.mark.parametrize(
    ("name", "keys", "sums", "recompute"),
    [
        ("live_at_peak", ["state", "operator_name"], ["block_count", "bytes"], memory.live_at_peak),
        ("memory_leaks", ["operator_name"], ["live_count", "live_bytes"], memory.memory_leaks),
    ],
)
def test_memory_in_use_is_what_a_recomputation_says(
    job: tuple[int, TraceStore],
    name: str,
    keys: list[str],
    sums: list[str],
    recompute: Callable[[World, Scope], list[dict[str, Any]]],
) -> None:
    """Memory in use, summed by operator, agrees with its recomputation."""
    seed, store = job
    keys = ["run", "rank", "device_type", "device", *keys]
    for scope in scopes(seed):
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in found_rows(store, name, {}, scope):
            own = found[repr([row[key] for key in keys])]
            own[:] = [n + (row[column] or 0) for n, column in zip(own, sums, strict=True)]
        expected = {
            repr([row[key] for key in keys]): [row[column] or 0 for column in sums]
            for row in recompute(world(seed), scope)
        }
        assert found == expected, scope


def test_top_costs_are_the_parts_of_the_steps(job: tuple[int, TraceStore]) -> None:
    """The top costs are the parts of step_accounting, with idle time divided by cause."""
    seed, store = job
    parts = ("exposed_transfer", "exposed_unmatched", "exposed_wait", "exposed_memory")
    for scope in scopes(seed):
        steps = found_rows(store, "step_accounting", {}, scope)
        active = {
            (row["run"], row["rank"])
            for row in steps
            if row["step_ns"]
            > sum(row[f"idle_{where}_ns"] for where in ("before", "between", "after"))
        }
        steps = [row for row in steps if (row["run"], row["rank"]) in active]
        expected: dict[tuple[str, str], int] = defaultdict(int)
        for row in steps:
            for part in parts:
                expected[row["run"], part] += row[f"{part}_ns"]
        known = {(row["run"], row["rank"], row["step"]) for row in steps}
        windows = store.sql(
            "SELECT run, rank, ts, ts + step_ns, step FROM step_parts WHERE NOT is_common"
        )
        chosen = [row[:4] for row in windows.rows() if (row[0], row[1], row[4]) in known]
        for key, ns in tree.idle_causes(world(seed), chosen).items():
            expected[key] += ns
        found = found_rows(store, "top_costs", {"num_kernels": 0}, scope)
        assert {(row["run"], row["cost"]): row["cost_ns"] for row in found} == {
            key: ns for key, ns in expected.items() if ns
        }
        spans: dict[str, int] = defaultdict(int)
        for row in steps:
            spans[row["run"]] += row["step_ns"]
        for row in found:
            assert row["cost_pct"] == pytest.approx(100 * row["cost_ns"] / spans[row["run"]])


@pytest.mark.parametrize(
    "level", ["operator", "outermost operator", "module", "frame", "annotation"]
)
def test_idle_causes_sum_to_the_idle_time_of_the_steps(
    job: tuple[int, TraceStore], level: str
) -> None:
    """Idle causes sum to the idle time of each rank with device activity, to the nanosecond."""
    seed, store = job
    active = set(
        store.sql(
            "SELECT DISTINCT run, rank FROM gpu_ops WHERE class <> 'sync' AND NOT is_suspect "
            "AND dur > 0 AND (class <> 'communication' OR device IS NOT NULL)"
        ).rows()
    )
    for scope in scopes(seed):
        expected: dict[tuple[str, int], int] = defaultdict(int)
        for row in found_rows(store, "step_accounting", {}, scope):
            if (row["run"], row["rank"]) in active:
                expected[row["run"], row["rank"]] += sum(
                    row[f"idle_{where}_ns"] for where in ("before", "between", "after")
                )
        found: dict[tuple[str, int], int] = defaultdict(int)
        for row in found_rows(store, "idle_causes", {"level": level}, scope):
            assert 0 < row["longest_ns"] <= row["idle_ns"]
            assert row["gap_count"] > 0
            found[row["run"], row["rank"]] += row["idle_ns"]
        assert found == {key: ns for key, ns in expected.items() if ns}, scope


def test_trace_diff_is_the_difference_of_its_sides(job: tuple[int, TraceStore]) -> None:
    """trace_diff equals the recomputed difference between runs, ranks and steps."""
    seed, store = job
    for runs, ranks, test_ranks, steps, by_number in (
        (["a", "b.run-2"], None, None, None, False),
        (["a", "b.run-2"], None, None, None, True),
        (["b.run-2"], [0], [1], None, False),
        (["b.run-2", "a"], [1, 3], None, [3], False),
    ):
        control = Scope(runs[:1], ranks, steps)
        test = Scope(runs[-1:], test_ranks or ranks, steps)
        expected = host.trace_diff(world(seed), control, test, by_step_number=by_number)
        options: dict[str, Any] = {
            "runs": runs,
            "ranks": ranks,
            "test_ranks": test_ranks,
            "steps": steps,
            "by_step_number": by_number,
        }
        found = found_rows(store, "trace_diff", options, Scope())
        columns = list(expected[0]) if expected else []
        assert len(found) == len(expected)
        assert comparable(found, columns) == comparable(expected, columns)


def test_critical_path_edges_go_forward_between_two_nodes_an_event(
    job: tuple[int, TraceStore],
) -> None:
    """The critical path graph has no cycle, duplicate edge, unknown node or negative time."""
    seed, store = job
    found = store.run("critical_path_nodes", include_last_profiler_step=True).arrow().to_pylist()
    nodes = {(n["run"], n["rank"], n["node_id"]): n for n in found}
    scope = Scope(include_last_profiler_step=True)
    hosts = world(seed).hosts(scope, "cpu_op", "cuda_runtime", "cuda_driver")
    ops = [op for op in world(seed).ops(scope) if op.launch]
    events = {(i.run, i.rank, i.id) for i in [*hosts, *ops]}
    assert {(n["run"], n["rank"], n["event_id"]) for n in found} == events
    assert len(nodes) == len(found) == 2 * len(events)
    options: dict[str, Any] = {"include_last_profiler_step": True, "include_launch_edges": True}
    edges = store.run("critical_path_edges", **options).arrow().to_pylist()
    keys = [
        (e["run"], e["rank"], e["begin_node_id"], e["end_node_id"], e["edge_type"]) for e in edges
    ]
    assert len(set(keys)) == len(keys)
    for edge in edges:
        where = edge["run"], edge["rank"]
        begin, end = nodes[(*where, edge["begin_node_id"])], nodes[(*where, edge["end_node_id"])]
        assert edge["begin_node_id"] < edge["end_node_id"]
        assert begin["ts"] <= end["ts"]
        assert 0 <= edge["weight_ns"] <= end["ts"] - begin["ts"]
        assert (begin["event_id"], end["event_id"]) == (
            edge["begin_event_id"],
            edge["end_event_id"],
        )
