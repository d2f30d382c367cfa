"""Groups on streams without metadata are right or undivided, and waits are right or unknown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest

from tests.jobs.simulator import Collective
from tests.jobs.spec import US, PlantedJob
from tests.jobs.tables import database, fill, rows_of
from tests.jobs.traces import Trace, capture

SEEDS = range(60)
ROUNDING_NS = 2_000
LEAST_DIVIDED = 9
"""Of the jobs with two groups, how many have groups that the end times tell apart clearly."""


@cache
def job_of(seed: int) -> PlantedJob:
    """Return a job with 2, 4, 8 or 16 ranks, in one group or (from 4 ranks) in two."""
    chance = Random(seed)
    ranks = (2, 4, 8, 16)[seed % 4]
    has_two = ranks > 2 and seed // 4 % 2 == 1
    scatter_us = chance.choice([1, 3, 10, 30, 60, 100, 200]) / 3
    return PlantedJob(
        ranks=ranks,
        tp=ranks // 2 if has_two else ranks,
        steps=chance.choice([4, 6]),
        scatter_ns=round(scatter_us * US),
        tick_ns=chance.choice([1, US]),
        noise=chance.choice([0.01, 0.03, 0.08]),
        slower_clock={chance.randrange(ranks): 1.3} if chance.random() < 0.4 else {},
        names_hosts=chance.random() < 0.5,
        metadata="none",
        seed=seed,
    )


@dataclass(frozen=True)
class Found:
    """A collective's part as it was matched."""

    channel: str
    wait_ns: int
    """Missing if no other rank has the collective."""
    spread_ns: int
    is_trusted: bool

    @property
    def is_known(self) -> bool:
        """Whether the wait is stated as valid."""
        return self.is_trusted and self.wait_ns is not None


@dataclass(frozen=True)
class Answered:
    """A job and what was found: each part of a collective, with the true part."""

    job: PlantedJob
    parts: list[tuple[Collective, Found]]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Answered]:
    """Match the collectives of all jobs in one database, which takes 10 s."""
    captured = {seed: capture(job_of(seed)) for seed in SEEDS}
    with database(tmp_path_factory.mktemp("streams")) as con:
        fill(con, rows_of({str(seed): (job_of(seed), t) for seed, t in captured.items()}))
        rows = con.execute(
            "SELECT run, rank, event_id, channel, wait_ns, end_spread_ns, end_times_match "
            "FROM derived.matched_collectives_v1(NULL)"
        ).fetchall()
    found: dict[int, dict[tuple[int, int], Found]] = defaultdict(dict)
    for run, rank, event, *values in rows:
        found[int(run)][rank, event] = Found(*values)
    return {seed: _answered(seed, traces, found[seed]) for seed, traces in captured.items()}


def _answered(seed: int, traces: list[Trace], found: dict[tuple[int, int], Any]) -> Answered:
    parts = [part for trace in traces for part in trace.did.collectives if part.event is not None]
    return Answered(job_of(seed), [(part, found[part.rank, part.event or 0]) for part in parts])


@pytest.mark.parametrize("seed", SEEDS)
def test_no_group_is_divided(answered: dict[int, Answered], seed: int) -> None:
    """All ranks of a group are in one channel."""
    channels = defaultdict(set)
    for part, found in answered[seed].parts:
        channels[part.kind, part.group].add(found.channel)
    assert {len(names) for names in channels.values()} == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_waits_are_right_within_the_spread_or_unknown(
    answered: dict[int, Answered], seed: int
) -> None:
    """A wait with trusted end times differs from the true one by at most the channel's spread."""
    spreads: dict[str, int] = defaultdict(int)
    known = [(part, found) for part, found in answered[seed].parts if found.is_known]
    for _, found in known:
        spreads[found.channel] = max(spreads[found.channel], found.spread_ns)
    for part, found in known:
        assert abs(found.wait_ns - part.wait) <= spreads[found.channel] + ROUNDING_NS, part


def test_two_groups_are_told_apart_if_the_ends_are_clear(answered: dict[int, Answered]) -> None:
    """In some jobs with two groups, each group has a channel of its own."""
    divided = set()
    for seed, each in answered.items():
        channels = {found.channel for part, found in each.parts if part.kind == "tp"}
        groups = {part.group for part, _ in each.parts if part.kind == "tp"}
        if len(groups) == len(channels) > 1:
            divided.add(seed)
    assert len(divided) >= LEAST_DIVIDED


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_told_apart_although_a_rank_is_slow(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """All groups of two are found, although the group of the slow rank differs most."""
    job = PlantedJob(
        ranks=8, tp=2, steps=8, noise=0.03, slower_kernel={6: 2.8}, metadata="none", seed=seed
    )
    with database(tmp_path_factory.mktemp("slow")) as con:
        fill(con, rows_of({"run": (job, capture(job))}))
        found = con.execute(
            "SELECT list(DISTINCT rank ORDER BY rank) FROM derived.matched_collectives_v1(NULL) "
            "WHERE stream = 20 GROUP BY channel ORDER BY 1"
        ).fetchall()
    assert found == [([0, 1],), ([2, 3],), ([4, 5],), ([6, 7],)]


UNRELATED = [
    PlantedJob(ranks=2, tp=2, steps=8, noise=0.1, metadata="none", slower_clock=slower, seed=seed)
    for seed, slower in ((1, {}), (2, {0: 1.4, 1: 1.4}))
]


def test_end_times_of_unrelated_ranks_disagree(tmp_path_factory: pytest.TempPathFactory) -> None:
    """If two ranks are in different groups, most of their collectives are marked as uncertain."""
    traces = [capture(job)[rank] for rank, job in enumerate(UNRELATED)]
    with database(tmp_path_factory.mktemp("unrelated")) as con:
        fill(con, rows_of({"run": (UNRELATED[0], traces)}))
        found = con.execute(
            "SELECT count(*), count_if(end_times_match AND found_count > 1) "
            "FROM derived.matched_collectives_v1(NULL)"
        ).fetchone()
    assert found is not None
    count, trusted_count = found
    assert count > 40
    assert 4 * trusted_count < count
