"""What-if answers for simulated jobs match simulations of the same jobs without the fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.synthetic import JobSpec, write_job
from tests.judgement.kinds import planted
from tests.judgement.kineto import write
from tests.judgement.score import POINTS, SHARE

SEED = 4

STRAGGLERS = ("FSDP, hidden", "hot expert", "drift", "accumulation", "serving")
"""Kinds of jobs whose straggler is always found, so that tests depend only on the replay."""

LINKS = ("slow link, pair", "slow link, rank")
ANY = ("tp x pp x dp", "pp x dp", "sequence lengths", "noise, host jitter", "checkpoint")


Row = dict[str, Any]


def rows_of(folder: Path) -> dict[str, Row]:
    """Ingest the traces in a folder and return the rows of ``what_if`` by scenario."""
    with hta_sql.ingest(folder / "traces", folder / "job.store") as store:
        return {row["scenario"]: row for row in store.run("what_if").arrow().to_pylist()}


def answers(
    kind: str, folder: Path, seed: int = SEED, *, writes_waits: bool = True
) -> tuple[dict[str, float], dict[str, float | None]]:
    """Return the true savings of a job, and the savings that ``what_if`` predicts [%]."""
    job, machine, truth = planted(kind, seed)
    write(folder / "traces", replace(job, writes_waits=writes_waits), machine)
    rows = rows_of(folder)
    return truth.saved_pct, {scenario: row["saved_pct"] for scenario, row in rows.items()}


def is_near(answer: float | None, right: float) -> bool:
    """Return whether a predicted saving is correct within the tolerance."""
    return answer is not None and abs(answer - right) <= max(POINTS, SHARE * right)


@pytest.mark.parametrize("kind", STRAGGLERS)
def test_no_late_rank_saves_what_the_fault_costs(kind: str, tmp_path: Path) -> None:
    """The predicted saving without the slow rank equals the cost of the fault."""
    right, answered = answers(kind, tmp_path)
    assert is_near(answered["no late rank"], right["no straggler"])
    assert is_near(answered["no transfer"], right["no transfer"])


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_at_its_peers_speed_saves_what_it_costs(kind: str, tmp_path: Path) -> None:
    """The predicted saving of a link at its peers' speed equals the cost of the slow link."""
    right, answered = answers(kind, tmp_path)
    assert is_near(answered["link at peers' speed"], right["link at peers' speed"])


@pytest.mark.parametrize("kind", ANY)
def test_no_transfer_saves_what_transfers_cost_and_nothing_costs_time(
    kind: str, tmp_path: Path
) -> None:
    """The predicted saving without transfers equals their cost, and no saving is negative."""
    right, answered = answers(kind, tmp_path)
    assert is_near(answered["no transfer"], right["no transfer"])
    assert all(saved is None or saved >= 0 for saved in answered.values())


@pytest.mark.parametrize("kind", ["pp x dp", "serving", "slow link, rank"])
def test_a_host_whose_waits_are_not_recorded_still_follows_its_device(
    kind: str, tmp_path: Path
) -> None:
    """Savings are correct even if the calls in which hosts wait are not recorded."""
    right, answered = answers(kind, tmp_path, writes_waits=False)
    for scenario in right.keys() - {"no straggler"}:
        assert is_near(answered[scenario], right[scenario])


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("slow link, rank", 1001), ("slow link, rank", 1002), ("FSDP, exposed", 1101)],
)
def test_a_capture_that_begins_within_a_run_saves_as_the_whole_run(
    kind: str, seed: int, tmp_path: Path
) -> None:
    """Savings are correct even if the capture begins within a run, after some launches."""
    right, answered = answers(kind, tmp_path, seed)
    for scenario in right.keys() - {"no straggler"}:
        assert is_near(answered[scenario], right[scenario])


def test_savings_are_lower_bounds_if_no_host_was_seen_to_wait(tmp_path: Path) -> None:
    """Savings are lower bounds if hosts run ahead and their waits are not recorded."""
    job, machine, _ = planted("slow link, rank", 1002)
    write(tmp_path / "traces", replace(job, writes_waits=False), machine)
    rows = rows_of(tmp_path)
    assert not job.syncs_every_step
    assert rows["no transfer"]["bound"] == "lower"
    assert rows["perfect overlap"]["bound"] == "lower"  # its launches do not move either


def test_one_slow_host_is_no_recorder_that_writes_launches_late(tmp_path: Path) -> None:
    """Savings are correct for a slow host, even if its waits are not recorded."""
    job, machine, truth = planted("FSDP, hidden", 7100)
    assert [fault.kind for fault in job.faults] == ["host-bound"]
    write(tmp_path / "traces", replace(job, writes_waits=False), machine)
    rows = rows_of(tmp_path)
    assert is_near(rows["no late rank"]["saved_pct"], truth.saved_pct["no straggler"])
    assert rows["no transfer"]["saved_pct"] < truth.saved_pct["no transfer"] + POINTS


def edited(folder: Path, rank: int, edit: Callable[[list[Row]], list[Row]]) -> None:
    """Edit the events in a rank's trace."""
    path = folder / "traces" / f"rank-{rank}.json"
    trace = json.loads(path.read_text())
    path.write_text(json.dumps(trace | {"traceEvents": edit(trace["traceEvents"])}))


def without_some_kernels(events: list[Row]) -> list[Row]:
    """Remove the kernels in the middle seventh of the capture."""
    starts = sorted(event["ts"] for event in events if event["cat"] == "kernel")
    first, last = starts[len(starts) * 3 // 7], starts[len(starts) * 4 // 7]
    return [e for e in events if e["cat"] != "kernel" or not first <= e["ts"] < last]


@pytest.mark.parametrize("is_late", [True, False])
def test_savings_are_lower_bounds_if_a_trace_lost_events(is_late: bool, tmp_path: Path) -> None:
    """If a trace lost events, savings are lower bounds that do not exceed the true savings."""
    job, machine, truth = planted("pp x dp", 7000)
    write(tmp_path / "traces", job, machine)
    (late,) = truth.late
    edited(tmp_path, late if is_late else (late + 1) % job.ranks, without_some_kernels)
    rows = rows_of(tmp_path)
    for scenario, right in (("no late rank", "no straggler"), ("no transfer", "no transfer")):
        assert rows[scenario]["bound"] == "lower"
        assert 0 < rows[scenario]["saved_pct"] <= truth.saved_pct[right] + POINTS
    assert rows["perfect overlap"]["bound"] == "lower"


def with_more_data(events: list[Row]) -> list[Row]:
    """Increase the data of each all-to-all by a third."""
    size = "In msg nelems"
    for event in events:
        if event["args"].get("Collective name") == "all_to_allv":
            event["args"][size] = event["args"][size] * 4 // 3
    return events


def test_savings_of_work_are_lower_bounds_if_data_sizes_differ(tmp_path: Path) -> None:
    """If data sizes differ between ranks, savings from less work are lower bounds.

    The replay keeps the recorded transfers, although they would be shorter as well.
    """
    job, machine, truth = planted("hot expert", SEED)
    write(tmp_path / "traces", job, machine)
    for rank in truth.late:
        edited(tmp_path, rank, with_more_data)
    rows = rows_of(tmp_path)
    assert rows["no late rank"]["bound"] == rows["balanced"]["bound"] == "lower"
    assert rows["no transfer"]["bound"] == "estimate"


def test_a_rank_that_loads_longer_costs_what_the_job_takes_less_without_it(tmp_path: Path) -> None:
    """The predicted saving without slow data loading equals the difference to the healthy job."""
    delayed = JobSpec(ranks=4, steps=4, stragglers={2: 3_000_000})
    lengths = []
    for name, spec in (("late", delayed), ("healthy", replace(delayed, stragglers={}))):
        write_job(tmp_path / name / "traces", spec)
        rows = rows_of(tmp_path / name)
        lengths.append(rows["as recorded"]["recorded_ns"])
        if name == "late":
            answered = rows["no late rank"]["saved_pct"]
    assert answered == pytest.approx(100 * (1 - lengths[1] / lengths[0]), abs=POINTS)


def test_waits_for_a_missing_rank_count_as_transfers(tmp_path: Path) -> None:
    """If the trace of the late rank is missing, the saving without transfers is an upper bound.

    Advice does not call such waits transfers.
    """
    job, machine, truth = planted("FSDP, hidden", 7100)
    write(tmp_path / "traces", job, machine)
    (late,) = truth.late
    (tmp_path / "traces" / f"rank-{late}.json").unlink()
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "job.store") as store:
        (row,) = (r for r in store.run("what_if").records() if r["scenario"] == "no transfer")
        advice = store.run("advice").records()
    assert (row["bound"], row["reason_code"]) == ("upper", "what_if.waits_for_missing")
    assert row["saved_pct"] > truth.saved_pct["no transfer"] + POINTS
    assert {
        (one["confidence"], one["message_code"])
        for one in advice
        if one["rule"] == "exposed_transfer"
    } == {("low", "advice.exposed_transfer_or_wait")}
