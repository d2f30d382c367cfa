"""Tests that hangs planted in simulated NCCL jobs are found, with rank, group and operation."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from tests.hang_jobs import Group, Job, Op, pipeline, training, write_pickles

if TYPE_CHECKING:
    from pathlib import Path

SMALL = (pytest.param(4, 2, id="4 ranks"), pytest.param(16, 4, id="16 ranks"))
LARGE = pytest.param(512, 8, id="512 ranks", marks=pytest.mark.slow(reason="large"))
SIZES = (*SMALL, LARGE)
SIZES_AND_128 = (*SMALL, pytest.param(128, 8, id="128 ranks"), LARGE)
STEPS = 4
OPS_A_STEP = 4


def rows_of(job: Job, folder: Path, *, without: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Ingest the dumps of a job and return the rows of the ``hang`` analysis."""
    write_pickles(job, folder / "dumps")
    for rank in without:
        (folder / "dumps" / f"nccl_trace_rank_{rank}").unlink()
    with hta_sql.ingest(folder / "dumps", folder / "job.store", run="job") as store:
        return store.run("hang").records()


def roots(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are the root cause."""
    return [row for row in rows if row["is_root"]]


def planted_at(ranks: int, seed: str) -> tuple[int, int]:
    """Choose the rank of a fault and its position in that rank's program."""
    rng = random.Random(seed)
    return rng.randrange(ranks), rng.randrange(OPS_A_STEP, (STEPS - 1) * OPS_A_STEP)


@pytest.mark.parametrize(("ranks", "width"), SIZES)
def test_a_healthy_job_has_no_rows(tmp_path: Path, ranks: int, width: int) -> None:
    """A healthy job has no rows, because every operation that a rank entered has finished."""
    assert rows_of(training(ranks, width, STEPS), tmp_path) == []


@pytest.mark.parametrize(("ranks", "width"), SIZES_AND_128)
def test_the_rank_that_never_entered_is_named_with_its_group_and_number(
    tmp_path: Path, ranks: int, width: int
) -> None:
    """All root causes name only the missing rank.

    One of them has the group and number of the operation that the rank never entered.
    """
    job = training(ranks, width, STEPS)
    rank, at = planted_at(ranks, f"missing {ranks}")
    op = job.programs[rank][at]
    number = sum(o.group == op.group for o in job.programs[rank][: at + 1])
    del job.programs[rank][at:]
    found = roots(rows_of(job, tmp_path))
    assert {row["culprit_ranks"] for row in found} == {str(rank)}
    assert {row["kind"] for row in found} == {"missing"}
    assert (f"{op.group.desc} ({op.group.name})", number) in {
        (row["channel"], row["collective_seq_id"]) for row in found
    }
    assert all(f"Rank {rank} never entered" in row["message"] for row in found)


@pytest.mark.parametrize(("ranks", "width"), SIZES)
@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"name": "all_gather"}, "collective"),
        ({"count": 77}, "input_sizes, output_sizes"),
        ({"kind": "BFloat16"}, "elem_type"),
    ],
    ids=["operation", "size", "type"],
)
def test_the_rank_that_entered_something_else_is_named(
    tmp_path: Path, ranks: int, width: int, change: dict[str, Any], differs: str
) -> None:
    """The root cause and the mismatch name the rank that entered a different operation."""
    job = training(ranks, width, STEPS)
    rank, at = planted_at(ranks, f"{change} {ranks}")
    at -= at % OPS_A_STEP  # the first in its step: an all-reduce of the tensor-parallel group
    op = job.programs[rank][at]
    if width == 2:
        rank = max(rank, *op.group.ranks)  # with two ranks, the lower one counts as usual
    job.programs[rank][at] = replace(op, **change)
    write_pickles(job, tmp_path / "dumps")
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        (root,) = roots(store.run("hang").records())
        (mismatch,) = store.run("collective_mismatches").records()
    assert (root["kind"], root["culprit_ranks"]) == ("mismatch", str(rank))
    assert root["channel"] == f"{op.group.desc} ({op.group.name})"
    assert root["collective_seq_id"] == at // OPS_A_STEP * 2 + 1
    assert (mismatch["rank"], mismatch["differs_in"]) == (rank, differs)
    assert (mismatch["found_in"], mismatch["collective_id"]) == ("dump", root["collective_seq_id"])


@pytest.mark.parametrize(("ranks", "width"), SIZES)
def test_groups_that_wait_for_each_other_are_all_roots(
    tmp_path: Path, ranks: int, width: int
) -> None:
    """One rank swaps two operations, so that two groups wait for each other.

    It enters the barrier of all ranks before the all-reduce across groups.
    """
    job = training(ranks, width, STEPS)
    rank, _ = planted_at(ranks, f"order {ranks}")
    program = job.programs[rank]
    program[6], program[7] = program[7], program[6]
    found = roots(rows_of(job, tmp_path))
    assert {row["kind"] for row in found} == {"deadlock"}
    assert {row["channel"].partition(" ")[0] for row in found} == {"dp", "default_pg"}
    assert str(rank) in {row["culprit_ranks"] for row in found}


@pytest.mark.parametrize(("ranks", "width"), SIZES_AND_128)
def test_without_half_of_the_dumps_nobody_is_accused_wrongly(
    tmp_path: Path, ranks: int, width: int
) -> None:
    """If half of the dumps are missing, only the actual culprit or nobody is accused.

    The waiting groups are still reported, with the ranks that have no dump.
    """
    job = training(ranks, width, STEPS)
    rank, at = planted_at(ranks, f"half {ranks}")
    del job.programs[rank][at:]
    rng = random.Random(ranks)
    lost = tuple(sorted(rng.sample(range(ranks), ranks // 2)))
    found = roots(rows_of(job, tmp_path, without=lost))
    assert found
    assert {row["culprit_ranks"] for row in found} <= {str(rank), None}
    if rank in lost:
        assert {row["kind"] for row in found} == {"no_dump"}


def test_a_send_without_its_receive_is_a_row_of_its_own(tmp_path: Path) -> None:
    """An unmatched send has its own row, whose ranks are numbered within the job, not the group."""
    world = Group("0", "default_pg", (0, 1, 2, 3))
    stages = Group("9", "pp", (1, 3))
    programs = {rank: [Op(world)] for rank in range(4)}
    programs[1] += [Op(stages, "send", 8, peer=3, line=70), Op(stages, "send", 8, peer=3, line=71)]
    programs[3] += [Op(stages, "recv", 8, peer=1)]
    (row,) = rows_of(Job([world, stages], programs), tmp_path)
    assert (row["channel"], row["kind"], row["is_p2p"]) == ("pp (9) 1->3", "missing", True)
    assert (row["waiting_ranks"], row["culprit_ranks"]) == ("1", "3")
    assert row["frame"] == "/home/jo/train.py:71 in train_step"


def test_a_rank_that_crashed_without_a_dump_is_named_and_not_accused(tmp_path: Path) -> None:
    """Only groups that wait directly for the crashed rank are the cause, not the later stages."""
    job = pipeline()
    del job.programs[0][9:]  # at its fourth all-to-all
    rows = rows_of(job, tmp_path, without=(0,))
    found = roots(rows)
    assert {(row["channel"], row["kind"], row["undumped_ranks"]) for row in found} == {
        ("ep (10)", "no_dump", "0"),
        ("pp (20) 0->4", "no_dump", "0"),
    }
    assert {row["culprit_ranks"] for row in rows} == {None}
    assert len(rows) > len(found)


def test_a_receive_that_is_left_out_is_a_deadlock_with_what_its_rank_waits_in(
    tmp_path: Path,
) -> None:
    """The sender waits for the missing receive, while the receiver waits in a collective."""
    job = pipeline()
    program = job.programs[5]
    del program[[op.name for op in program].index("recv", 5)]
    rows = rows_of(job, tmp_path)
    assert {row["kind"] for row in rows} == {"deadlock"}
    assert {(row["channel"], row["culprit_ranks"]) for row in rows} == {
        ("pp (21) 1->5", "5"),
        ("default_pg (0)", "1"),
    }


def test_the_ring_of_a_long_job_has_its_last_operations_only(tmp_path: Path) -> None:
    """Operations are numbered within the group, even if the ring buffer lost earlier entries."""
    job = training(8, 4, 50)
    del job.programs[6][161:]
    write_pickles(job, tmp_path / "dumps", buffer=20)
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        found = roots(store.run("hang").records())
    assert {row["culprit_ranks"] for row in found} == {"6"}
    assert ("tp (tp4)", 82) in {(row["channel"], row["collective_seq_id"]) for row in found}


def test_ranks_that_were_late_before_are_told(tmp_path: Path) -> None:
    """Lateness before the hang is measured from when the hosts enqueued the same collectives."""
    job = training(8, 4, 10)
    job.slow_ns[5] = 3_000_000
    write_pickles(job, tmp_path / "dumps")
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        rows = store.run("dump_arrivals").records()
    late = {row["rank"] for row in rows if row["median_late_ns"] > 2_000_000}
    assert late == {5}
    assert {row["last_in_pct"] for row in rows if row["rank"] == 5} == {100.0}


def test_what_a_damaged_dump_may_have_lost_is_no_accusation(tmp_path: Path) -> None:
    """A rank with a damaged dump is reported as undumped, and the missing rank as the cause."""
    job = training(8, 4, 3)
    del job.programs[5][9:]
    write_pickles(job, tmp_path / "dumps")
    cut = tmp_path / "dumps" / "nccl_trace_rank_6"
    cut.write_bytes(cut.read_bytes()[:-1500])
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        rows = store.run("hang").records()
        cells = store.run("hang_grid", ranks=[6]).records()
    (tensor,) = [row for row in rows if row["channel"] == "tp (tp4)"]
    assert (tensor["culprit_ranks"], tensor["undumped_ranks"]) == ("5", "6")
    assert {row["culprit_ranks"] for row in rows} <= {"5", None}
    assert "no dump" in {cell["state"] for cell in cells if cell["is_stuck"]}


def test_half_a_dump_is_read_as_far_as_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A dump whose writer was killed is read up to the point where it is cut off."""
    job = training(4, 2, 3)
    write_pickles(job, tmp_path / "dumps")
    path = tmp_path / "dumps" / "nccl_trace_rank_2"
    path.write_bytes(path.read_bytes()[:-400])
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        (count,) = store.sql("SELECT count(*) FROM fr_entries WHERE rank = 2").rows()[0]
        assert store.run("hang").rows() == []
        ((rank, reason),) = store.sql("SELECT rank, reason FROM quarantine").rows()
        findings = {row["finding"]: row["message"] for row in store.run("findings").records()}
    assert 0 < count < 12
    assert (rank, reason[:43]) == (2, "Flight Recorder dump: it is cut off at byte")
    assert findings["damaged_artifact"] == f"{reason}."
    assert "lost_spans" not in findings
    assert "nccl_trace_rank_2' is damaged: it is cut off at byte" in caplog.text


def test_two_ranks_that_end_early_are_two_causes_whichever_ranks_are_shown(tmp_path: Path) -> None:
    """Causes are numbered by the rank that blocks, before groups are selected by rank."""
    job = training(8, 4, 3)
    del job.programs[1][5:]
    del job.programs[6][5:]
    write_pickles(job, tmp_path / "dumps")
    with hta_sql.ingest(tmp_path / "dumps", tmp_path / "job.store", run="job") as store:
        rows = store.run("hang").records()
        of_six = store.run("hang", ranks=[6]).records()
    numbers = {row["culprit_ranks"]: row["cause_id"] for row in roots(rows)}
    assert numbers == {"1": 1, "6": 2}
    assert of_six == [row for row in rows if row in of_six]
