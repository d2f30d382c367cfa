"""Every analysis of two joined recordings of a simulated job depends only on recorded events."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.synthetic import JobSpec, write_job

NAMES = sorted(analysis.base_name for analysis in load_library().newest())
LAST = "include_last_profiler_step"
WITH_LAST = {
    analysis.base_name
    for analysis in load_library().newest()
    if LAST in {parameter.name for parameter in analysis.parameters}
}
SECOND = 1_000_000_000

NUMBERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("all_to_all_traffic", "cluster_communication_cost", "cluster_step_trace"),
            *("collective_mismatches", "cuda_kernel_launch_stats", "cupti_counters_by_operator"),
            *("event_arguments", "expert_load", "frequent_kernel_sequences", "graph_kernels"),
            *("gpu_kernels_with_user_annotations", "kernel_sequence_events", "links", "mfu"),
            *("memory_allocations", "memory_bandwidth_series", "memory_leaks", "p2p_pairs"),
            *("pipeline_stages", "profiler_steps", "queue_length_series", "rank_clocks"),
            *("step_accounting", "step_breakdown", "step_contents", "trace_events"),
        ),
        (),
    ),
    **dict.fromkeys(("collectives", "collective_waits"), ("collective_id",)),
    "call_stack": ("tree_id",),
    "cluster_overview": ("step_z", "is_slow_step", "straggler_verdict", "step_count"),
    "critical_path_nodes": ("node_id",),
    "gpu_timeline": ("start_ns", "end_ns"),
    "memory_curve": ("is_peak",),
    "operator_across_ranks": ("position", "rank_mean_ns", "occurrence_z"),
    "straggler_metric": ("normalized_start",),
}
"""Analyses with a row per event, step or collective ─▶ columns that depend on the whole run."""

ADDED: dict[str, tuple[str, ...]] = {
    "blocking_communication": (),
    "comm_comp_overlap": (),
    "folded_stacks": (),
    "gpu_kernel_types": (),
    "gpu_summary": (
        "multiprocessor_count",
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "capacity_bytes",
    ),
    "idle_time_breakdown": (),
    "kernel_table": ("registers_per_thread_count", "shared_memory_bytes", "min_ns", "max_ns"),
    "launching_operators": (),
    "memory_bandwidth_summary": (),
    "memory_by_operator": (),
    "operator_table": (),
    "process_group_costs": (),
    "queue_full_time": (),
    "queue_length_summary": (),
    "source_lines": (),
    "special_operators": (),
    "stragglers": (),
    "temporal_breakdown": (),
}
"""Analyses with sums ─▶ columns that do not add up over recordings."""

SCALED = {"stragglers": (("late_ns", "cost_ns"), 6)}
"""Analysis ─▶ sums over blocks that are scaled to the run's mean block, and the number of blocks.

A joined run has another mean block, and each scaled block is rounded to 1 ns.
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, hta_sql.TraceStore]]:
    """Ingest two recordings as two runs, as one run, and as one run with a 1,000 s longer gap."""
    top = tmp_path_factory.mktemp("spans")
    opened = {}
    for name, apart in (("apart", 10), ("joined", 10), ("far", 1010)):
        folder = top / name / "job"
        folder.mkdir(parents=True)
        for span in range(2):
            spec = JobSpec(
                ranks=2,
                steps=3,
                first_step=10 + 10 * span,
                layers=2,
                ops_per_layer=3,
                memory_events=True,
                python_stacks=True,
                sync_events=True,
                stragglers={1: 3_000_000},
                seed=span,
                start_ns=SECOND * (1 + span * apart),
                gzip=False,
            )
            for file in write_job(top / name / str(span), spec).files:
                shutil.copy(file, folder / file.name)
        store = top / f"{name}.store"
        opened[name] = hta_sql.ingest(folder, store, jobs=1, join_spans=name != "apart")
    yield opened
    for one in opened.values():
        one.close()


@cache
def rows(store: hta_sql.TraceStore, name: str, *, last: bool) -> list[dict[str, Any]]:
    """Return the rows of an analysis, with or without last steps."""
    given: dict[str, Any] = {LAST: last} if name in WITH_LAST else {}
    return list(store.run(name, **given).arrow().to_pylist())


def scopes(names: Iterable[str]) -> list[tuple[str, bool]]:
    """Return each analysis with its last steps, and also without them where it can omit them."""
    return [(name, last) for name in names for last in (True, False) if last or name in WITH_LAST]


def is_time(column: str) -> bool:
    """Return whether a column may be a point in time."""
    return column in {"ts", "start_ns", "end_ns"} or column.endswith("_ts")


def is_id(column: str) -> bool:
    """Return whether a column identifies an event."""
    events = {"launch_id", "op_id", "annotation_id", "parent_id", "allocation_id", "free_id"}
    others = {"previous_id", "next_id", "forward_id", "backward_id"}
    return column.endswith("event_id") or column in events | others


@pytest.mark.parametrize(("name", "last"), scopes(NAMES))
def test_the_length_of_the_gap_changes_nothing(
    stores: dict[str, hta_sql.TraceStore], name: str, last: bool
) -> None:
    """A longer gap between the recordings changes only points in time."""

    def timeless(store: hta_sql.TraceStore) -> list[dict[str, Any]]:
        ((offset,),) = store.sql("SELECT min(offset_ns) FROM rank_spans WHERE span = 1").rows()
        return [
            {
                column: value - offset
                if is_time(column) and value is not None and value >= offset
                else pytest.approx(value, rel=1e-9, nan_ok=True)
                if isinstance(value, float)
                else value
                for column, value in row.items()
                if column != "source"
            }
            for row in rows(store, name, last=last)
        ]

    assert timeless(stores["joined"]) == timeless(stores["far"])


@pytest.mark.parametrize(("name", "last"), scopes(NUMBERS))
def test_rows_are_those_of_the_runs(
    stores: dict[str, hta_sql.TraceStore], name: str, last: bool
) -> None:
    """Joined recordings have the events, steps, collectives and figures of separate runs."""
    ((offset,),) = (
        stores["joined"].sql("SELECT min(offset_ns) FROM rank_spans WHERE span = 1").rows()
    )

    def placed(row: dict[str, Any], column: str) -> Any:
        value = row[column]
        if not row["run"].endswith("-capture2"):
            return value
        if column == "span":
            return 1
        if column == "run":
            return "job"
        if is_id(column) and value is not None and value >= 0:
            return value + (1 << 32)
        return value + offset if is_time(column) and value is not None else value

    def counted(store: hta_sql.TraceStore) -> Counter[str]:
        return Counter(
            repr([placed(row, column) for column in row if column not in NUMBERS[name]])
            for row in rows(store, name, last=last)
        )

    assert counted(stores["apart"]) == counted(stores["joined"])


@pytest.mark.parametrize(("name", "last"), scopes(ADDED))
def test_sums_are_those_of_the_runs(
    stores: dict[str, hta_sql.TraceStore], name: str, last: bool
) -> None:
    """Times, counts and bytes of joined recordings are the sums over separate runs."""

    def added(store: hta_sql.TraceStore) -> Counter[str]:
        sums: Counter[str] = Counter()
        for row in rows(store, name, last=last):
            for column, value in row.items():
                is_sum = column.endswith(("_ns", "_count", "_bytes")) and isinstance(value, int)
                if is_sum and column not in ADDED[name]:
                    sums[f"rank {row['rank']} {column}"] += value
        return sums

    apart, joined = added(stores["apart"]), added(stores["joined"])
    columns, blocks = SCALED.get(name, ((), 0))
    scaled = {key for key in apart if key.rpartition(" ")[2] in columns}
    assert all(abs(apart[key] - joined[key]) <= blocks for key in scaled)
    for key in scaled:
        apart[key] = joined[key]
    assert apart == joined
