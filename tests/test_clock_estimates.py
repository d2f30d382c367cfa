"""Tests of the clock estimates of ranks, with expected values computed by hand.

The inputs are the end times of a few collectives.
"""

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
    """Collectives of one group, given by the end times of each rank on that rank's own clock.

    The first rank is the reference.
    """

    ends: dict[int, list[int]]
    disagreeing: tuple[int, ...] = ()
    """Ranks whose gaps disagree with those of the reference."""
    unusable: int = 0
    """Number of initial collectives that are unusable."""


Said = tuple[str, int, float, float | None, float, int, bool]


@dataclass(frozen=True)
class Case:
    """A run, given by its lanes and the hosts of its ranks, and the expected row of each rank."""

    lanes: list[Lane]
    wanted: list[Said]
    """Expected values per rank.

    They are domain, root, estimate, spread, drift, collective count, and whether the offset is
    applied.
    """
    hosts: list[str | None] = field(default_factory=lambda: [None, None])


def after(starts: list[int], *more: int) -> list[int]:
    """Return the end times of a rank whose clock is ahead by a repeating sequence of offsets."""
    return [at + more[place % len(more)] for place, at in enumerate(starts)]


def drifting(starts: list[int], drift: float) -> list[int]:
    """Return the end times of a rank whose clock drifts."""
    return [at + round(drift * at) for at in starts]


TENTH = [place * MS // 10 for place in range(6)]
LONG = [place * 10 * MS for place in range(15)]
"""End times of fifteen collectives, five in each third of the capture."""


def first(count: int, spread: float = 0) -> Said:
    """Return the expected values of rank 0, which is the reference of the other ranks."""
    return ("rank 0", 0, 0, spread, 0, count, False)


def of_two(
    ahead: list[int], estimate: float, spread: float = 0, drift: float = 0, *, applied: bool = True
) -> Case:
    """Return a case in which rank 0 ends its collectives at ``LONG``, and rank 1 at ``ahead``."""
    count = len(ahead)
    said = ("rank 1", 0, estimate, spread, drift, count, applied)
    return Case([Lane({0: LONG[:count], 1: ahead})], [first(count, spread), said])


CASES = {
    # Three microseconds ahead or behind; the reference rank needs no offset.
    "ahead": of_two(after(LONG, 3000), 3000),
    "behind": of_two(after(LONG, -3000), -3000),
    "none": of_two(LONG, 0, applied=False),
    # The median of 100, 3000 and 200 ns is 200. Halved distances to it are 50, 1400 and 0, so their
    # median is 50 on both sides.
    "the median counts": of_two(after(LONG[:3], 100, 3000, 200), 200, 50),
    # Differences alternate between 0 (8 times) and 200 ns (7 times), so the median is 0. The halved
    # distances to it are 0 and 100, with a median of 0.
    "by turns": of_two(after(LONG, 0, 200), 0, applied=False),
    # The medians of the first and last five are 100 ms apart.
    "a drift": of_two(drifting(LONG, 1.01e-5), 1.01e-5 * 70_000_000, drift=1.01e-5),
    "a drift backwards": of_two(drifting(LONG, -1.01e-5), -1.01e-5 * 70_000_000, drift=-1.01e-5),
    # 1001 ns, without scatter. Without the drift, the rest goes from 200 to -200 ns in steps of 100:
    # the median of the halves is 50.
    "a drift without scatter": of_two(
        after(LONG, *[0] * 5, *[500] * 5, *[1001] * 5), 500, 50, 1.001e-5
    ),
    # Times in whole microseconds: a change by one of them is a rounding error, not a drift.
    "one tick": of_two(after(LONG, *[0] * 10, *[1000] * 5), 0, applied=False),
    # The capture of one rank ends before that of the other begins, according to its own clock.
    "a drift, seconds apart": of_two(
        after(drifting(LONG, 2e-5), 2_000 * MS), 2_000 * MS + 1400, drift=2e-5
    ),
    # The scatter within each third is 100 ns, and 8 / sqrt(5) times that are 358 ns. The median of all
    # differences is 350 ns, and that of the distances to it is 150 ns, half of it on each side.
    "not yet a drift": of_two(
        after(LONG, *range(0, 500, 100), *range(150, 650, 100), *range(300, 800, 100)), 350, 75
    ),
    # The same scatter, but 360 ns in 100 ms. Without the drift, each third goes from 252 to 508 ns in
    # steps of 64, so the median distance is 64, half of it on each side.
    "just a drift": of_two(
        after(LONG, *range(0, 500, 100), *range(180, 680, 100), *range(360, 860, 100)),
        *(380, 32, 3.6e-6),
    ),
    "no longer a drift": of_two(drifting(LONG, 2e-4), 14_000, 4_000),
    # Four in the first third: 1000 ns more every 10 ms. Halves of 0.5 to 5.5 times that are the
    # distances to the median.
    "too few for a drift": of_two(drifting(LONG[:12], 1e-4), 5_500, 1_500),
    # Two collectives that are unusable and would give a different result.
    "two are of no use": Case(
        [Lane({0: LONG, 1: [at + (9000 if at < 20 * MS else 3000) for at in LONG]}, unusable=2)],
        [first(13), ("rank 1", 0, 3000, 0, 0, 13, True)],
    ),
    # Each rank is its own reference.
    "gaps disagree": Case(
        [Lane({0: TENTH, 1: after(TENTH, 3000)}, disagreeing=(1,))],
        [first(6), ("rank 1", 1, 0, 0, 0, 6, False)],
    ),
    # Floating-point numbers lose 256 ns of such times.
    "decades apart": of_two(after(LONG, 1_700_000_000_000_000_003), 1_700_000_000_000_000_003),
    # The host does not set the clock of rank 1, which is a minute ahead.
    "a clock of its own": Case(
        [Lane({0: TENTH, 1: after(TENTH, 60_000 * MS)})],
        [("a", 0, 0, 0, 0, 6, False), ("rank 1", 0, 60_000 * MS, 0, 0, 6, True)],
        hosts=["a", "a"],
    ),
    "no collective": Case([Lane({0: TENTH})], [first(6), ("rank 1", 1, 0, None, 0, 0, False)]),
    # Six of 100 ns in one group and three of 5 µs in a different one: the median of all nine.
    "two groups of a pair": Case(
        [Lane({0: TENTH, 1: after(TENTH, 100)}), Lane({0: TENTH[:3], 1: after(TENTH[:3], 5000)})],
        [first(9), ("rank 1", 0, 100, 0, 0, 9, True)],
    ),
    # Rank 2 meets rank 1, which meets rank 0.
    "through another": Case(
        [Lane({0: TENTH, 1: after(TENTH, 100)}), Lane({1: TENTH, 2: after(TENTH, 1000)})],
        [
            first(6),
            ("rank 1", 0, 100, 0, 0, 12, True),
            ("rank 2", 0, 1100, 0, 0, 6, True),
        ],
        hosts=[None] * 3,
    ),
    # Rank 1 only meets rank 2, which is 1000 ns ahead of rank 0 and 300 ns ahead of rank 1.
    "backwards through another": Case(
        [Lane({0: TENTH, 2: after(TENTH, 1000)}), Lane({1: TENTH, 2: after(TENTH, 300)})],
        [
            first(6),
            ("rank 1", 0, 700, 0, 0, 6, True),
            ("rank 2", 0, 1000, 0, 0, 12, True),
        ],
        hosts=[None] * 3,
    ),
    # Rank 2 is estimated at 500 ns directly from rank 0, although it meets rank 1 more often, which
    # would give 1100 ns. Of the 600 ns between them, ranks 1 and 2 get half each. The median of six
    # times 0 and -300 is -150, and that of six times 300 and three times 0 is 300.
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
    # Rank 3 meets rank 2 twice as often as rank 1.
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
    # Two ranks share a clock and are 100 and 300 ns ahead of the other host: 200 ns, and 50 ns from
    # the middle of each pair.
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
    """Return one shared engine with the macros and the data of all cases."""
    con = engine_with(
        MACROS,
        "CREATE TABLE ranks (run VARCHAR, rank INTEGER, host_name VARCHAR)",
        "CREATE TABLE rank_spans (run VARCHAR, rank INTEGER, span INTEGER)",
        "CREATE TABLE items (run VARCHAR, span INTEGER, lane_id BIGINT, rank INTEGER, number BIGINT, "
        "nth BIGINT, end_ts BIGINT, is_usable BOOLEAN)",
        "CREATE TABLE shifts (lane_id BIGINT, rank INTEGER, ref_rank INTEGER, gaps_agree BOOLEAN)",
    )
    for place, (name, case) in enumerate(CASES.items()):
        # Each case is a run. LATER is ingested as a second, later recording of the same run.
        _fill(con, name, 0, 100 * place, case)
        _fill(con, name, 1, 100 * place + 50, LATER)
        ranks = [(name, rank, host) for rank, host in enumerate(case.hosts)]
        con.executemany("INSERT INTO ranks VALUES (?, ?, ?)", ranks)
        spans = [(name, rank, span) for rank in range(len(ranks)) for span in (0, 1)]
        con.executemany("INSERT INTO rank_spans VALUES (?, ?, ?)", spans)
    return con


LATER = Case([Lane({0: TENTH, 1: after(TENTH, -7_000)})], [])
"""Lanes of the later recording that each run has."""


def _fill(con: duckdb.DuckDBPyConnection, run: str, span: int, lane_id: int, case: Case) -> None:
    for number, lane in enumerate(case.lanes, lane_id):
        for rank, ends in lane.ends.items():
            shift = (number, rank, min(lane.ends), rank not in lane.disagreeing)
            con.execute("INSERT INTO shifts VALUES (?, ?, ?, ?)", shift)
            items = [
                (run, span, number, rank, place // 2, place % 2, at, place >= lane.unusable)
                for place, at in enumerate(ends)
            ]
            con.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", items)


@cache
def answers() -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """Return the rows of one query over all runs, by run and recording."""
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    rows = connection().execute(
        "FROM lib._clock_estimates(NULL, 'items', 'shifts') ORDER BY run, span, rank"
    )
    for run, _, span, *said in rows.fetchall():
        found.setdefault((run, span), []).append(tuple(said))
    return found


@pytest.mark.parametrize("name", CASES)
def test_how_far_clocks_are_ahead(name: str) -> None:
    """Each rank has the expected offset at the middle of the reference rank's capture."""
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
    """In the later recording, rank 1 is behind, whatever its offset in the earlier one was."""
    for run, case in CASES.items():
        if case.hosts == [None, None]:
            domain, root, estimate, *_ = answers()[run, 1][1]
            assert (domain, root, estimate) == ("rank 1", 0, -7000)


def test_runs_that_are_not_asked_for_have_none() -> None:
    """A query of one run returns the same rows for it as a query of all runs."""
    rows = (
        connection().execute("FROM lib._clock_estimates(['ahead'], 'items', 'shifts')").fetchall()
    )
    assert sorted(rows) == sorted(
        ("ahead", rank, span, *said)
        for span in (0, 1)
        for rank, said in enumerate(answers()["ahead", span])
    )
