"""Clocks of ranks, computed by hand from the end times of a few collectives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import pytest

from tests.macros import engine_with

MACROS = ("_clock_estimates", "is_requested")

MS = 1_000_000


@dataclass(frozen=True)
class Lane:
    """Collectives of one group: end times of each rank on its own clock; the first rank is the reference."""

    ends: dict[int, list[int]]
    scores: dict[int, int] = field(default_factory=dict)
    unusable: int = 0
    """Number of initial collectives that are unusable."""


Said = tuple[str, int, float, float | None, float, int, bool]


@dataclass(frozen=True)
class Case:
    """Lanes of a run, hosts of its ranks, and the expected row of each rank."""

    lanes: list[Lane]
    wanted: list[Said]
    """Expected values of each rank: domain, root, estimate, spread, drift, ends, and whether it is applied."""
    hosts: list[str | None] = field(default_factory=lambda: [None, None])


def after(starts: list[int], *more: int) -> list[int]:
    """Return the end times of a rank whose clock is ahead, by one offset or one per collective."""
    return [at + more[place % len(more)] for place, at in enumerate(starts)]


def drifting(starts: list[int], drift: float) -> list[int]:
    """Return the end times of a rank whose clock drifts."""
    return [at + round(drift * at) for at in starts]


TENTH = [place * MS // 10 for place in range(6)]
LONG = [place * 10 * MS for place in range(15)]
"""Five collectives in each third."""


def first(count: int, spread: float = 0) -> Said:
    """Return rank 0, the reference of the others."""
    return ("rank 0", 0, 0, spread, 0, count, False)


def of_two(
    ahead: list[int], estimate: float, spread: float = 0, drift: float = 0, *, applied: bool = True
) -> Case:
    """Return rank 1 next to rank 0, whose end times are LONG."""
    count = len(ahead)
    said = ("rank 1", 0, estimate, spread, drift, count, applied)
    return Case([Lane({0: LONG[:count], 1: ahead})], [first(count, spread), said])


CASES = {
    # Three microseconds ahead, or behind; the reference is not.
    "ahead": of_two(after(LONG, 3000), 3000),
    "behind": of_two(after(LONG, -3000), -3000),
    "none": of_two(LONG, 0, applied=False),
    # 100, 3000 and 200 ns: 200. Half of the distances to it, 50, 1400 and 0, have the median 50 on both sides.
    "the median counts": of_two(after(LONG[:3], 100, 3000, 200), 200, 50),
    # Differences of 0 and 200 ns by turns, 8 and 7 of them: 0; of the halves to it 0, 100 the lesser half is 0.
    "by turns": of_two(after(LONG, 0, 200), 0, applied=False),
    # The medians of the first and the last five are 100 ms apart: 1010 ns there are a drift, 1000 are none. Without
    # one, the distances to the median are 0 to 7 times 100 ns, half of it on each side: 4 times 50 is the median.
    "a drift": of_two(drifting(LONG, 1.01e-5), 1.01e-5 * 70_000_000, drift=1.01e-5),
    "a drift backwards": of_two(drifting(LONG, -1.01e-5), -1.01e-5 * 70_000_000, drift=-1.01e-5),
    # 1001 ns; what is left of each third goes from 200 to -200 by 100: halves of it are 50 in the median.
    "just a drift": of_two(after(LONG, *[0] * 5, *[500] * 5, *[1001] * 5), 500.5, 50, 1.001e-5),
    # The capture of one rank ends before that of the other begins, by its own clock.
    "a drift, seconds apart": of_two(
        after(drifting(LONG, 2e-5), 2_000 * MS), 2_000 * MS + 1400, drift=2e-5
    ),
    "not yet a drift": of_two(drifting(LONG, 1e-5), 700, 200),
    "no longer a drift": of_two(drifting(LONG, 2e-4), 14_000, 4_000),
    # Four in the first third: 1000 ns more each 10 ms, halves of 0.5 to 5.5 times that to the median.
    "too few for a drift": of_two(drifting(LONG[:12], 1e-4), 5_500, 1_500),
    # Two that say nothing, and would say something else.
    "two are of no use": Case(
        [Lane({0: LONG, 1: [at + (9000 if at < 20 * MS else 3000) for at in LONG]}, unusable=2)],
        [first(13), ("rank 1", 0, 3000, 0, 0, 13, True)],
    ),
    "gaps agree just so": Case(
        [Lane({0: TENTH, 1: after(TENTH, 3000)}, {1: 6999})],
        [first(6), ("rank 1", 0, 3000, 0, 0, 6, True)],
    ),
    "no collective": Case([Lane({0: TENTH})], [first(6), ("rank 1", 1, 0, None, 0, 0, False)]),
    # Six of 100 ns in one group and three of 5 us in another: the median of all nine.
    "two groups of a pair": Case(
        [Lane({0: TENTH, 1: after(TENTH, 100)}), Lane({0: TENTH[:3], 1: after(TENTH[:3], 5000)})],
        [first(9), ("rank 1", 0, 100, 0, 0, 9, True)],
    ),
    # 2 meets 1, which meets 0.
    "through another": Case(
        [Lane({0: TENTH, 1: after(TENTH, 100)}), Lane({1: TENTH, 2: after(TENTH, 1000)})],
        [
            first(6),
            ("rank 1", 0, 100, 0, 0, 12, True),
            ("rank 2", 0, 1100, 0, 0, 6, True),
        ],
        hosts=[None] * 3,
    ),
    # 1 meets 2 alone, which is 1000 ns ahead of 0 and 300 ahead of 1.
    "backwards through another": Case(
        [Lane({0: TENTH, 2: after(TENTH, 1000)}), Lane({1: TENTH, 2: after(TENTH, 300)})],
        [
            first(6),
            ("rank 1", 0, 700, 0, 0, 6, True),
            ("rank 2", 0, 1000, 0, 0, 12, True),
        ],
        hosts=[None] * 3,
    ),
    # 2 is told by 0 itself, 500 ns, though it meets 1 more often, where it would be 1100. Of the 600 between them
    # each of 1 and 2 has half: the median of six times 0 and -300 is -150, that of six times 300 and three times 0 is 300.
    "the root goes before": Case(
        [
            Lane({0: TENTH, 1: after(TENTH, 100)}),
            Lane({1: TENTH, 2: after(TENTH, 1000)}),
            Lane({0: TENTH[:3], 2: after(TENTH[:3], 500)}),
        ],
        [
            first(9),
            ("rank 1", 0, 100 - 150, 150, 0, 12, False),
            ("rank 2", 0, 500 + 300, 0, 0, 9, True),
        ],
        hosts=[None] * 3,
    ),
    # 3 meets 2 twice as often as 1.
    "the more often met": Case(
        [
            Lane({0: TENTH, 1: after(TENTH, 100)}),
            Lane({0: TENTH, 2: after(TENTH, 200)}),
            Lane({1: TENTH[:3], 3: after(TENTH[:3], 1000)}),
            Lane({2: TENTH, 3: after(TENTH, 2000)}),
        ],
        [
            first(12),
            ("rank 1", 0, 100, 0, 0, 9, True),
            ("rank 2", 0, 200, 0, 0, 12, True),
            ("rank 3", 0, 2200, 0, 0, 9, True),
        ],
        hosts=[None] * 4,
    ),
    # One clock of two ranks, 100 and 300 ns ahead of another's: 200, and 50 to the middle of each pair.
    "hosts": Case(
        [Lane({0: TENTH, 1: after(TENTH, 100)}), Lane({0: TENTH, 2: after(TENTH, 300)})],
        [
            ("a", 0, 0, 50, 0, 12, False),
            ("b", 0, 200, 50, 0, 12, True),
            ("b", 0, 200, 50, 0, 12, True),
        ],
        hosts=["a", "b", "b"],
    ),
}


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one engine with the macros for all examples."""
    con = engine_with(
        MACROS,
        "CREATE TABLE ranks (run VARCHAR, rank INTEGER, host_name VARCHAR)",
        "CREATE TABLE rank_spans (run VARCHAR, rank INTEGER, span INTEGER)",
        "CREATE TABLE items (run VARCHAR, span INTEGER, lane_id BIGINT, rank INTEGER, number BIGINT, "
        "nth BIGINT, end_ts BIGINT, is_usable BOOLEAN)",
        "CREATE TABLE shifts (lane_id BIGINT, rank INTEGER, ref_rank INTEGER, score BIGINT)",
    )
    for place, (name, case) in enumerate(CASES.items()):
        # Each is a run, with another run's lanes as its later recording.
        _fill(con, name, 0, 100 * place, case)
        _fill(con, name, 1, 100 * place + 50, LATER)
        ranks = [(name, rank, host) for rank, host in enumerate(case.hosts)]
        con.executemany("INSERT INTO ranks VALUES (?, ?, ?)", ranks)
        spans = [(name, rank, span) for rank in range(len(ranks)) for span in (0, 1)]
        con.executemany("INSERT INTO rank_spans VALUES (?, ?, ?)", spans)
    return con


LATER = Case([Lane({0: TENTH, 1: after(TENTH, -7_000)})], [])
"""Name of another recording of each run."""


def _fill(con: duckdb.DuckDBPyConnection, run: str, span: int, lane_id: int, case: Case) -> None:
    for number, lane in enumerate(case.lanes, lane_id):
        for rank, ends in lane.ends.items():
            shift = (number, rank, min(lane.ends), lane.scores.get(rank, 0))
            con.execute("INSERT INTO shifts VALUES (?, ?, ?, ?)", shift)
            items = [
                (run, span, number, rank, place // 2, place % 2, at, place >= lane.unusable)
                for place, at in enumerate(ends)
            ]
            con.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", items)


@cache
def answers() -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """Return the rows of the macro for all runs at once, by run and recording."""
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    rows = connection().execute(
        "FROM lib._clock_estimates(NULL, 'items', 'shifts') ORDER BY run, span, rank"
    )
    for run, _, span, *said in rows.fetchall():
        found.setdefault((run, span), []).append(tuple(said))
    return found


@pytest.mark.parametrize("name", CASES)
def test_how_far_clocks_are_ahead(name: str) -> None:
    """Offsets hold for the middle of the reference rank's capture, on each rank's own clock."""
    case = CASES[name]
    found = []
    for domain, root, estimate, spread, drift, mid, count, is_applied in answers()[name, 0]:
        ends = [at for lane in case.lanes for at in lane.ends.get(root, [])]
        middle = min(ends) + (max(ends) - min(ends)) // 2 if ends else 0
        assert abs(mid - middle - estimate) <= 1
        found.append((domain, root, estimate, spread, drift, count, is_applied))
    assert found == [tuple(map(_close, said)) for said in case.wanted]


def _close(value: object) -> object:
    return pytest.approx(value, abs=1e-3) if isinstance(value, float) else value


def test_a_later_recording_has_clocks_of_its_own() -> None:
    """In the later recording rank 1 is behind, whatever its clock was in the earlier one."""
    for run, case in CASES.items():
        if case.hosts == [None, None]:
            domain, root, estimate, *_ = answers()[run, 1][1]
            assert (domain, root, estimate) == ("rank 1", 0, -7000)


def test_runs_that_are_not_asked_for_have_none() -> None:
    """The rows of one run alone equal its rows in a query of all runs."""
    rows = (
        connection().execute("FROM lib._clock_estimates(['ahead'], 'items', 'shifts')").fetchall()
    )
    assert sorted(rows) == sorted(
        ("ahead", rank, span, *said)
        for span in (0, 1)
        for rank, said in enumerate(answers()["ahead", span])
    )
