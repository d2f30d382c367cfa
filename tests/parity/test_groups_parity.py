"""Costs and traffic of process groups in the public jobs, with TraceLens's message sizes."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import JOBS
from tests.parity.test_tracelens_collectives import TRACELENS

pytestmark = pytest.mark.skipif(not TRACELENS.is_dir(), reason="TraceLens's tables are not here")

EXPOSED = ("exposed_transfer_ns", "exposed_unmatched_ns", "exposed_wait_ns")


@pytest.mark.parametrize("job", JOBS)
def test_groups_expose_what_the_steps_expose(job: str, jobs_store: TraceStore) -> None:
    """The groups' exposed time equals that of the steps, and a group's parts sum to its time."""
    wanted: Counter[tuple[int, str]] = Counter()
    found: Counter[tuple[int, str]] = Counter()
    for row in jobs_store.run("step_accounting", runs=[job]).arrow().to_pylist():
        wanted.update({(row["rank"], name): row[name] for name in EXPOSED})
    for row in jobs_store.run("process_group_costs", runs=[job]).arrow().to_pylist():
        found.update({(row["rank"], name): row[name] for name in EXPOSED})
        if row["part"] == "group":
            parts = (*EXPOSED, "exposed_shared_ns", "overlapped_ns")
            assert sum(row[name] for name in parts) == row["communication_ns"]
    assert +found == +wanted


@pytest.mark.parametrize("job", ["megatron_tp2_v100", "nanogpt_8rank_h100"])
def test_groups_move_what_tracelens_counts(job: str, jobs_store: TraceStore) -> None:
    """The bytes of each group equal TraceLens's, excluding kernels without metadata."""
    with (TRACELENS / f"{job}_nccl_implicit_sync.csv").open(encoding="utf-8") as file:
        theirs = [float(row["Full msg size (MB)"]) * 1024**2 for row in csv.DictReader(file)]
    rows = jobs_store.run("process_group_costs", runs=[job], include_last_profiler_step=True)
    listed = rows.arrow().to_pylist()
    assert listed
    for row in listed:
        assert row["sized_count"] == len(theirs)
        assert row["bytes"] == round(sum(theirs))


@pytest.mark.parametrize("job", JOBS)
def test_what_is_not_recorded_is_no_number(job: str, jobs_store: TraceStore) -> None:
    """All-to-all traffic is NULL with a reason, because no public job records split sizes."""
    rows = jobs_store.run("all_to_all_traffic", runs=[job], include_last_profiler_step=True)
    (count,) = jobs_store.sql(
        "SELECT count(*) FROM matched_collectives WHERE run = $run AND collective = 'all_to_all'",
        {"run": job},
    ).rows()[0]
    listed = rows.arrow().to_pylist()
    assert sum(row["collective_count"] for row in listed) == count
    assert all(row["bytes"] is None and row["reason"] for row in listed)


@pytest.mark.parametrize("job", JOBS)
def test_ranks_wait_and_communicate_as_long_as_their_kernels_run(
    job: str, jobs_store: TraceStore
) -> None:
    """Waiting, communicating and unmatched time sum to the duration of the kernels."""
    rows = jobs_store.run("communication_by_rank", runs=[job], include_last_profiler_step=True)
    lengths = dict(
        jobs_store.sql(
            "SELECT rank, sum(dur)::BIGINT FROM matched_collectives WHERE run = $run GROUP BY rank",
            {"run": job},
        ).rows()
    )
    parts = ("communication_ns", "wait_ns", "unmatched_ns")
    found = {row["rank"]: sum(row[name] or 0 for name in parts) for row in rows.arrow().to_pylist()}
    assert found == lengths


@pytest.mark.parametrize("job", JOBS)
def test_what_blocks_and_what_does_not_is_what_is_exposed(job: str, jobs_store: TraceStore) -> None:
    """Blocking, coincident and unknown time sum exactly to the exposed communication."""
    wanted: Counter[int] = Counter()
    found: Counter[int] = Counter()
    for row in jobs_store.run("process_group_costs", runs=[job]).arrow().to_pylist():
        wanted.update({row["rank"]: sum(row[name] for name in EXPOSED)})
    for row in jobs_store.run("blocking_communication", runs=[job]).arrow().to_pylist():
        parts = [row[f"exposed_{part}_ns"] for part in ("blocking", "coincident", "unknown")]
        assert min(parts) >= 0
        assert sum(parts) == row["exposed_ns"]
        found.update({row["rank"]: row["exposed_ns"]})
    assert +found == +wanted


@pytest.mark.parametrize("rank", [0, 2])
def test_the_path_is_that_of_a_walk(rank: int, jobs_store: TraceStore) -> None:
    """Walking backwards, each time to the latest dependency, finds the same critical path."""
    of = {"run": "nanogpt_8rank_h100", "rank": rank}
    edges = jobs_store.sql(
        "SELECT end_node_id, begin_node_id, event_id, weight_ns, bound_by FROM "
        "critical_path_edges_v1(runs := [$run], ranks := [$rank], include_launch_edges := true)",
        of,
    ).rows()
    before: dict[int, int] = {}
    for end, begin, *_ in edges:
        before[end] = max(begin, before.get(end, -1))
    node: int | None = max(before)
    path = set()
    while node is not None:
        path.add((node, before.get(node)))
        node = before.get(node)
    wanted: dict[int, int] = {}
    for end, begin, event, weight, bound_by in edges:
        if bound_by == "gpu_communication_bound" and (end, begin) in path:
            wanted[event] = max(weight, wanted.get(event, 0))
    found = jobs_store.sql(
        "SELECT event_id, on_path_ns FROM lib._blocking_stretches([$run], [$rank], NULL, false) "
        "WHERE on_path_ns IS NOT NULL",
        of,
    ).rows()
    assert found
    assert dict(found) == wanted
