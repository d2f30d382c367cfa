"""Waits and transfers in planted jobs match the simulator."""

from __future__ import annotations

import pytest

from tests.jobs.conftest import Jobs
from tests.jobs.kinds import KINDS, UNSURE

pytestmark = pytest.mark.slow(reason="large")  # its jobs take a minute to simulate and ingest

TOLERANCE_NS = 2_000


@pytest.mark.parametrize("run", KINDS)
def test_waits_and_transfers_are_those_of_the_simulator(jobs: Jobs, run: str) -> None:
    """For each fully captured collective, the wait and transfer of every rank are right."""
    rows = jobs.con.execute(
        "SELECT rank, event_id, wait_ns, transfer_ns, end_spread_ns FROM matched_collectives "
        "WHERE run = $run",
        {"run": run},
    ).fetchall()
    found = {(rank, event): numbers for rank, event, *numbers in rows}
    parts = jobs.collectives(run)
    assert len(parts) > 40
    for part in parts:
        wait, transfer, spread = found[part.rank, part.event or 0]
        allowed = TOLERANCE_NS + (spread if run in UNSURE else 0)
        assert abs(wait - part.wait) <= allowed, part
        assert abs(transfer - part.transfer) <= allowed, part


@pytest.mark.parametrize("run", sorted(KINDS.keys() - UNSURE))
def test_the_ranks_of_a_collective_have_one_number(jobs: Jobs, run: str) -> None:
    """All ranks of a collective have the same collective id, and the last one is marked."""
    rows = jobs.con.execute(
        "SELECT rank, event_id, collective_id, is_last FROM matched_collectives WHERE run = $run",
        {"run": run},
    ).fetchall()
    number = {(rank, event): number for rank, event, number, _ in rows}
    last = {(rank, event) for rank, event, _, is_last in rows if is_last}
    parts = jobs.collectives(run)
    keys = {part.key for part in parts}
    pairs = {(part.key, number[part.rank, part.event or 0]) for part in parts}
    assert len(pairs) == len({known for _, known in pairs}) == len(keys)
    assert {(p.rank, p.event) for p in parts if p.is_last} == {
        (p.rank, p.event) for p in parts if (p.rank, p.event) in last
    }


@pytest.mark.parametrize("run", KINDS)
def test_the_parts_of_a_step_sum_to_it(jobs: Jobs, run: str) -> None:
    """The parts of a step sum exactly to its duration, and none is negative."""
    parts = (
        "compute_ns, exposed_transfer_ns, exposed_unmatched_ns, exposed_wait_ns, "
        "exposed_memory_ns, idle_before_ns, idle_between_ns, idle_after_ns"
    )
    rows = jobs.con.execute(
        f"SELECT step_ns, {parts} FROM step_parts WHERE run = $run",  # noqa: S608 - ours
        {"run": run},
    ).fetchall()
    assert rows
    for step, *values in rows:
        assert sum(values) == step
        assert min(values) >= 0


def test_equal_rows_on_any_number_of_threads(jobs: Jobs) -> None:
    """Matches, waits and step parts do not depend on the number of threads."""
    digests = set()
    for threads in (1, 2, 5):
        jobs.con.execute(f"SET threads = {threads}")
        digests.add(
            tuple(
                jobs.con.execute(
                    "SELECT count(*), bit_xor(hash(x)) FROM "  # noqa: S608 - ours
                    f"(SELECT x FROM derived.{name}(NULL) AS x)"
                ).fetchone()
                or ()
                for name in ("matched_collectives_v1", "step_parts_v1")
            )
        )
    assert len(digests) == 1
