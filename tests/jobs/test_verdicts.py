"""Planted jobs get the right verdict: straggler, suspected, intermittent, slow link or stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.jobs.conftest import Jobs
from tests.jobs.kinds import DP
from tests.jobs.traces import write_job
from tests.production_job import needs_production, write_traces


def judged(jobs: Jobs, run: str) -> list[dict[str, Any]]:
    """Return the rows of ``stragglers`` for a run."""
    answer = jobs.con.execute("FROM stragglers_v1(runs := [$run])", {"run": run})
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def verdicts(rows: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
    """Return the verdict and cause of each rank whose verdict is not ``none``."""
    return {row["rank"]: (row["verdict"], row["cause"]) for row in rows if row["verdict"] != "none"}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("in some steps", {5: ("intermittent", "data loading")}),
        ("checkpoint", {0: ("intermittent", "checkpoint")}),
        ("two at once", {1: ("straggler", "slower compute"), 6: ("straggler", "data loading")}),
        ("few steps", {3: ("straggler", "slower compute")}),
        ("gathered parameters", {2: ("straggler", "slower compute")}),
        ("hot expert", {4: ("straggler", "more compute")}),
        ("other sequences", {}),
        ("host pauses", {}),
        ("slow group", {}),
    ],
)
def test_each_rank_has_the_level_of_what_is_planted(
    jobs: Jobs, run: str, expected: dict[int, tuple[str, str]]
) -> None:
    """Each rank has the expected verdict, and the cause explains most of its delay."""
    rows = judged(jobs, run)
    assert verdicts(rows) == expected
    for row in rows:
        if row["rank"] in expected:
            assert row["cause_share_pct"] > 80
            assert row["cost_pct"] > 1


def test_late_steps_are_counted(jobs: Jobs) -> None:
    """An intermittent rank is late in four of 19 steps; the partial first step is not counted."""
    (late,) = (row for row in judged(jobs, "in some steps") if row["rank"] == 5)
    assert (late["late_step_count"], late["step_count"]) == (4, 19)
    assert late["verdict_reason"].startswith("late in 4 of 19 blocks of ")
    assert late["is_straggler"] is False


def test_a_single_step_gives_no_verdict(jobs: Jobs) -> None:
    """In a job with a single complete step, no straggler is named, and a reason is given."""
    rows = judged(jobs, "two steps")
    assert {row["verdict"] for row in rows} <= {"unknown", "none", "suspected"}
    assert all(row["verdict_reason"] for row in rows if row["verdict"] == "unknown")


def test_a_slow_group_is_a_link_and_none_of_its_ranks_a_straggler(jobs: Jobs) -> None:
    """A slow group is reported as a slow link, and none of its ranks as a straggler."""
    rows = judged(jobs, "slow group")
    linked = {row["rank"] for row in rows if row["cause"] == "slower transfer"}
    assert linked == {2, 6, 10, 14}
    ((channel, ranks, ratio, verdict),) = jobs.con.execute(
        "SELECT channel, link_ranks, ratio, verdict FROM slow_links_v1(runs := ['slow group'])"
    ).fetchall()
    assert (channel, ranks, verdict) == ("[2, 6, 10, 14]", "[2,6,10,14]", "slow")
    assert ratio == pytest.approx(3, rel=0.05)


def test_a_slow_pair_is_a_link(jobs: Jobs) -> None:
    """A slow pair of ranks in a pipeline is reported as a slow link, but a normal pair is not."""
    found = jobs.con.execute(
        "SELECT run, link_ranks FROM slow_links_v1(runs := ['slow pair', 'equal pairs'])"
    ).fetchall()
    assert found == [("slow pair", "[2,10]")]


def test_a_slow_stage_makes_no_straggler(jobs: Jobs) -> None:
    """A slow stage is reported, but none of its ranks is named as a straggler."""
    rows = judged(jobs, "slow stage")
    assert verdicts(rows) == {}
    assert {row["stage"] for row in rows if row["is_slow_stage"]} == {2}
    (message,) = {row["message"] for row in rows if row["stage"] == 2}
    assert message.startswith("Slow stage 2: it has more work than the other stages (16.1 %")


def test_a_straggler_makes_no_slow_stage(jobs: Jobs) -> None:
    """A slow rank in a stage is a straggler, and its stage is not reported as slow."""
    rows = judged(jobs, "pipeline of micro-batches")
    assert verdicts(rows) == {2: ("straggler", "slower compute")}
    assert not any(row["is_slow_stage"] for row in rows)


def test_a_missing_rank_may_be_the_straggler(tmp_path: Path) -> None:
    """If a rank is missing, no rank is named, because the missing one may be the straggler."""
    paths, _ = write_job(tmp_path / "traces", DP)
    Path(paths[2]).unlink()
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "store") as store:
        rows = store.run("stragglers").records()
    assert {(row["verdict"], row["verdict_reason"]) for row in rows} == {
        ("none", "1 of 4 ranks is missing; a missing rank may be the straggler")
    }


@needs_production
@pytest.mark.parametrize("steps", [4, 10, 32])
def test_a_production_job_has_a_slow_stage_and_no_straggler(tmp_path: Path, steps: int) -> None:
    """In a public production job, only stage 3 is slow, as published, and no rank is a straggler."""
    with hta_sql.ingest(write_traces(tmp_path / "traces", steps), tmp_path / "store") as store:
        rows = store.run("stragglers").records()
        steps_of_ranks = store.run("cluster_overview").records()
        first = store.run("advice").records()[0]
    assert {row["verdict"] for row in rows} == {"none"}
    assert {row["rank"] for row in rows if row["is_slow_stage"]} == {6, 7}
    assert {row["rank"] for row in steps_of_ranks if row["is_slow_stage"]} == {6, 7}
    assert not any(row["is_slow_rank"] for row in steps_of_ranks)
    assert (first["rule"], first["subject"]) == ("slow_stage", "stage 3")
