"""Tests of the job simulator: collectives, streams, noise, links and faults."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.judgement.job import MS, Fault, Job, SlowLink
from tests.judgement.kinds import KINDS, planted
from tests.judgement.programs import simulate
from tests.judgement.truth import late_steps, length

JOB = Job(ranks=4, steps=3, layers=2, noise_share=0.01)


def test_a_collective_ends_after_its_last_rank_has_come() -> None:
    """The transfer of a collective begins when its last rank starts; ranks leave it separately."""
    machine = simulate(JOB)
    meetings = {id(i.meeting): i.meeting for items in machine.items for i in items if i.meeting}
    assert meetings
    for meeting in meetings.values():
        assert {part.rank for part in meeting.parts} == set(meeting.group)
        through = max(part.start for part in meeting.parts) + meeting.transfer_ns
        assert all(part.end == through + part.duration_ns for part in meeting.parts)


def test_streams_run_one_item_after_another() -> None:
    """No two operations on a stream overlap."""
    for items in simulate(replace(JOB, framework="fsdp")).items:
        for stream in {item.stream for item in items}:
            line = [item for item in items if item.stream == stream]
            assert all(a.end <= b.start for a, b in pairwise(line))


def test_noise_is_the_same_without_the_fault() -> None:
    """Removing a fault does not change the kernel durations of other ranks."""
    late = replace(JOB, faults=(Fault("slower clocks", (1,), 1.5),))
    for rank in (0, 2, 3):
        with_fault, without = simulate(late).items[rank], simulate(late.healthy()).items[rank]
        assert [i.duration_ns for i in with_fault] == [i.duration_ns for i in without]


def test_a_slow_link_slows_the_groups_that_cross_it() -> None:
    """A slow link slows down only the groups whose transfers cross it."""
    job = replace(JOB, framework="tensor", ranks=8, tensor=2, links=(SlowLink(4.0, rank=3),))
    assert job.link_factor(job.group("dp", 3)) == job.link_factor(job.group("dp", 1)) == 4.0
    assert job.link_factor(job.group("dp", 0)) == 1.0
    assert length(job, simulate(job)) > length(job, simulate(job.at_peer_speed()))


@pytest.mark.parametrize("kind", ["DDP, few steps", "pp x dp", "serving", "slow link, pair"])
def test_a_kind_is_the_same_job_for_the_same_seed(kind: str) -> None:
    """The kind and the seed determine the whole job."""
    (first, one, truth), (second, other, same) = planted(kind, 5), planted(kind, 5)
    assert first == second
    assert truth == same
    assert [i.end for i in one.items[0]] == [i.end for i in other.items[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_drawn_and_runs_to_its_end(kind: str) -> None:
    """Jobs of every kind can be simulated, and only ranks with a trace have expected verdicts."""
    job, machine, truth = planted(kind, 3)
    assert all(item.end >= item.start >= 0 for items in machine.items for item in items)
    assert set(truth.late) <= set(range(job.ranks)) - set(job.missing)


def test_a_step_is_late_if_the_fault_makes_it_longer() -> None:
    """Only steps that the fault makes longer count as late, even if hosts run ahead."""
    pauses = Fault("data loading", (2,), 5 * MS, steps=(1, 3))
    job = replace(JOB, steps=6, faults=(pauses,))
    assert late_steps(job) == 2
    assert late_steps(replace(job, warm_steps=1)) == 2
    assert late_steps(job.healthy()) == 0
