"""The causes of idle time in planted jobs are found."""

from __future__ import annotations

import pytest

from tests.jobs.conftest import Jobs
from tests.jobs.kinds import KINDS


@pytest.mark.parametrize("run", KINDS)
def test_causes_sum_to_the_idle_time_of_each_rank(jobs: Jobs, run: str) -> None:
    """The idle time of all causes sums exactly to the idle time of each rank."""
    found = jobs.con.execute(
        "SELECT rank, sum(idle_ns) FROM idle_causes_v1(runs := [$run]) GROUP BY rank ORDER BY rank",
        {"run": run},
    ).fetchall()
    expected = jobs.con.execute(
        "SELECT rank, sum(idle_before_ns + idle_between_ns + idle_after_ns) "
        "FROM step_accounting_v1(runs := [$run]) GROUP BY rank ORDER BY rank",
        {"run": run},
    ).fetchall()
    assert found == expected
    assert found


def test_the_rank_that_waits_for_data_is_told_so(jobs: Jobs) -> None:
    """The main cause of rank 3's idle time is its slow data loading in each of 11 steps."""
    rows = jobs.con.execute(
        "SELECT rank, cause, name, idle_ns, gap_count "
        "FROM idle_causes_v1(runs := ['data loading']) WHERE position = 1"
    ).fetchall()
    by_rank = {rank: rest for rank, *rest in rows}
    cause, name, idle_ns, gaps = by_rank[3]
    assert (cause, gaps) == ("data loading", 11)
    assert name.startswith("enumerate(DataLoader)")
    ((loading_ns,),) = jobs.con.execute(
        "SELECT sum(dur) FROM annotations WHERE run = 'data loading' AND rank = 3 "
        "AND starts_with(name, 'enumerate') AND NOT in_last_step"
    ).fetchall()
    assert 0.95 * loading_ns < idle_ns <= loading_ns


def test_the_host_bound_rank_waits_for_its_operators(jobs: Jobs) -> None:
    """The main cause of rank 1's idle time is its planted slow host operators.

    Each operator takes 60 us longer. The device waits only for the first operator in each of 11
    steps, because it is busy during the other delays.
    """
    rows = jobs.con.execute(
        "SELECT rank, cause, relation, sum(idle_ns) FROM idle_causes_v1(runs := ['host-bound']) GROUP BY ALL"
    ).fetchall()
    waits = {(rank, cause): ns for rank, cause, relation, ns in rows if relation == "cause"}
    first = max((key for key in waits if key[0] == 1), key=waits.__getitem__)
    assert first == (1, "host operator"), waits
    others = [waits.get((rank, "host operator"), 0) for rank in (0, 2, 3)]
    assert {waits[first] - ns for ns in others} == {11 * 60_000}


def test_the_longest_idle_times_of_all_ranks_come_first(jobs: Jobs) -> None:
    """The first row of a run is the slow rank's, not that of rank 0."""
    rows = jobs.con.execute(
        "SELECT rank, idle_ns, position FROM idle_causes_v1(runs := ['data loading'])"
    ).fetchall()
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0], row[2]))
    assert rows[0][0] == 3


def test_the_rank_that_its_host_delays_leads_to_the_idle_time_of_all_ranks(jobs: Jobs) -> None:
    """The analysis that the straggler points to shows more idle time on its rank than on the others."""
    rows = jobs.con.execute(
        "SELECT rank, next_analysis, message FROM stragglers_v1(runs := ['host-bound']) WHERE is_straggler"
    ).fetchall()
    ((rank, analysis, message),) = rows
    assert (rank, analysis) == (1, "idle_causes")
    assert message.endswith("see idle_causes.")
    idle = jobs.con.execute(
        "SELECT rank, sum(idle_ns) FROM idle_causes_v1(runs := ['host-bound']) GROUP BY rank ORDER BY 2 DESC, rank"
    ).fetchall()
    assert idle[0][0] == 1


def test_the_largest_contents_of_all_steps_come_first(jobs: Jobs) -> None:
    """step_contents orders the rows of a run by their time."""
    times = [
        ns
        for (ns,) in jobs.con.execute(
            "SELECT self_ns FROM step_contents_v1(runs := ['host-bound'])"
        ).fetchall()
    ]
    assert times == sorted(times, reverse=True)
