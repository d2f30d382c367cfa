"""A replay without the slow rank takes as long as the job simulated without its fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.authoring.golden_messages import render
from hta_sql.library import sqltext
from hta_sql.replay.graph import EDGES, NODES, read_replay, select_of
from hta_sql.replay.scenarios import recorded
from hta_sql.replay.sweep import Sweep
from tests.jobs.conftest import Jobs
from tests.jobs.kinds import CAUSES, KINDS, UNSURE
from tests.jobs.simulator import simulate
from tests.jobs.spec import PlantedJob
from tests.serving_jobs import decode, trace

ONE_LATE = [run for run in CAUSES if run != "slower clocks, 2 ranks"]
"""Jobs with one slow rank, except the job that has only two ranks."""


def joins_by_run(node: dict[str, Any]) -> Iterator[int]:
    """Return the estimated rows of the joins of a plan that compare nothing but the run."""
    about = node.get("extra_info", {})
    if about.get("Conditions") in ("run = run", ["run = run"]):
        yield int(about["Estimated Cardinality"])
    for child in node.get("children", ()):
        yield from joins_by_run(child)


def length(job: PlantedJob) -> int:
    """Return the time from the first event to the last end on any device."""
    events = [event for rank in simulate(job) for event in rank.events]
    ends = [event.end for event in events if event.stream is not None]
    return max(ends) - min(event.start for event in events)


def answers(jobs: Jobs, run: str) -> dict[str, tuple[int, int | None, str | None]]:
    """Return the recorded time, replayed time [ns] and reason, by scenario."""
    rows = jobs.con.execute(
        "SELECT scenario, recorded_ns, replayed_ns, reason FROM what_if_v1(runs := [$run])",
        {"run": run},
    ).fetchall()
    return {scenario: (recorded, replayed, why) for scenario, recorded, replayed, why in rows}


@pytest.mark.parametrize("run", sorted(set(KINDS) - UNSURE))
def test_unchanged_it_is_as_recorded(jobs: Jobs, run: str) -> None:
    """A replay of the unchanged job takes exactly the recorded time; no scenario takes longer.

    A scenario without a prediction and a lower bound have a reason; other scenarios have none.
    """
    told = answers(jobs, run)
    bounds = dict(
        jobs.con.execute(
            "SELECT scenario, bound FROM what_if_v1(runs := [$run])", {"run": run}
        ).fetchall()
    )
    recorded, replayed, _ = told["as recorded"]
    assert replayed == recorded > 0
    for scenario in ("no late rank", "no transfer", "no exposed communication"):
        _, replayed, why = told[scenario]
        assert replayed is None or replayed <= recorded
        assert (why is not None) == (replayed is None or bounds[scenario] == "lower")
    job, _ = jobs.runs[run]
    no_straggler = render("what_if.no_straggler")
    assert (told["no late rank"][2] == no_straggler) == (not job.late)


@pytest.mark.parametrize("run", sorted(set(KINDS) - UNSURE))
def test_unchanged_every_operation_ends_as_recorded(jobs: Jobs, run: str) -> None:
    """In a replay of the unchanged job, operations end within 2 us of their recorded end."""
    replay = read_replay(jobs.con, run)
    (ends,) = Sweep(replay.graph).ends([recorded(replay)])
    is_operation = replay.graph.is_operation
    assert is_operation.any()
    assert ends[is_operation] == pytest.approx(replay.nodes["end_ns"][is_operation], abs=2_000)


@pytest.mark.parametrize("run", ONE_LATE)
def test_without_the_late_rank_it_is_the_job_without_its_fault(jobs: Jobs, run: str) -> None:
    """The replay without the slow rank is as fast as the job without its fault, within 2 %."""
    job, _ = jobs.runs[run]
    healthy = replace(
        job, slower_clock={}, throttled={}, slower_kernel={}, more_kernels={}, bigger_batch={}, host_bound={}, loading={}
    )  # fmt: skip
    recorded, replayed, _ = answers(jobs, run)["no late rank"]
    assert replayed is not None
    assert replayed / recorded == pytest.approx(length(healthy) / length(job), abs=0.02)


def test_no_plan_joins_all_nodes_of_a_run_with_each_other(jobs: Jobs) -> None:
    """The time to find the dependencies grows with the number of nodes, not with its square."""
    run = ONE_LATE[0]
    jobs.con.execute(sqltext.create_table(NODES, select_of(NODES, run), "TEMPORARY"))
    ((_, text),) = jobs.con.execute(
        sqltext.explain("(FORMAT json)", select_of(EDGES, run))
    ).fetchall()
    ((nodes,),) = jobs.con.execute("SELECT count(*) FROM replay_nodes").fetchall()
    jobs.con.execute(sqltext.drop_table(NODES))
    rows = [count for root in json.loads(text) for count in joins_by_run(root)]
    assert rows, "the plan has joins by run alone, with tables of a few rows"
    assert max(rows) < 20 * nodes


def test_a_call_that_waits_before_every_operation_is_replayed(tmp_path: Path) -> None:
    """A replay is possible if a synchronization precedes all recorded operations."""
    document = trace([decode(is_graph=True)] * 3)
    wait = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1}
    document["traceEvents"].append(wait | {"ts": 1, "dur": 4, "args": {}})
    file = tmp_path / "rank0.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with hta_sql.ingest(file, tmp_path / "job.store") as store:
        rows = store.run("what_if_faster").records()
    assert rows
    assert all(row["saved_ns"] >= 0 for row in rows)
