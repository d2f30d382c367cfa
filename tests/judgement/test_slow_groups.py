"""Several ranks that are slower by the same share, such as those of one host, are all named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.judgement.job import Fault, Job
from tests.judgement.kineto import ingested
from tests.judgement.programs import simulate


@pytest.mark.parametrize(("ranks", "slow"), [(4, (1, 3)), (8, (0, 1, 2, 3)), (8, (2, 5))])
def test_all_ranks_of_a_slow_group_are_stragglers(
    tmp_path: Path, ranks: int, slow: tuple[int, ...]
) -> None:
    """The ranks of a group that is a fifth slower are stragglers with the same cause."""
    job = Job(ranks=ranks, steps=8, seed=4, faults=(Fault("slower clocks", slow, 1.2),))
    with ingested(tmp_path, job, simulate(job)) as store:
        rows = [row for row in store.run("stragglers").records() if row["is_straggler"]]
        (found,) = store.run("advice").records()[:1]
    assert {row["rank"]: row["cause"] for row in rows} == dict.fromkeys(slow, "slower compute")
    assert f"Stragglers: ranks {', '.join(map(str, slow))} have" in found["message"]


def test_a_slow_host_is_named(tmp_path: Path) -> None:
    """If all ranks of one host are stragglers, advice names the host."""
    fault = Fault("slower clocks", (4, 5, 6, 7), 1.2)
    job = Job(ranks=8, ranks_per_host=4, steps=6, seed=5, faults=(fault,))
    with ingested(tmp_path, job, simulate(job)) as store:
        messages = store.run("advice").df()["message"]
    assert messages.str.contains("all ranks of the host node-1").all()


def test_ranks_that_differ_are_no_group(tmp_path: Path) -> None:
    """Ranks whose speeds are spread evenly are not divided into a slow and a fast half."""
    faults = tuple(Fault("slower clocks", (rank,), 1 + 0.03 * rank) for rank in range(1, 8))
    job = replace(Job(ranks=8, steps=8, seed=6), faults=faults)
    with ingested(tmp_path, job, simulate(job)) as store:
        named = [row["rank"] for row in store.run("stragglers").records() if row["is_straggler"]]
    assert named == []
