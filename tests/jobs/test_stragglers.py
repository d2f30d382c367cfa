"""Straggler verdicts are right for planted jobs and for a thousand jobs without a slow rank."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

from hta_sql.library import sqltext
from tests.jobs.conftest import Jobs
from tests.jobs.kinds import KINDS, UNSURE
from tests.jobs.noise import SHARE, Kind, fill_jobs, noise
from tests.jobs.tables import database

SIZES = (2, 4, 8, 16, 64)
KINDS_OF_NOISE: tuple[Kind, ...] = ("normal", "exponential", "lognormal", "hiccups")


@pytest.mark.parametrize("run", KINDS)
def test_the_late_rank_and_nobody_else_is_named(jobs: Jobs, run: str) -> None:
    """Only the slow rank is named, with its cause and a message."""
    job, _ = jobs.runs[run]
    rows = jobs.con.execute(
        "SELECT rank, is_straggler, cause, message FROM stragglers_v1(runs := [$run])",
        {"run": run},
    ).fetchall()
    late = {rank: cause for rank, is_late, cause, _ in rows if is_late}
    # If groups cannot be told apart, no rank may be named.
    assert late == job.late or (run in UNSURE and not late)
    for rank, is_late, _, message in rows:
        assert (message is not None) == bool(is_late)
        # The wording is in sql/messages and in the golden case of stragglers_v1.
        assert message is None or f"rank {rank} " in message


def test_what_a_late_rank_costs_is_what_the_others_would_gain(jobs: Jobs) -> None:
    """The reported delay and cost equal the time that the other ranks wait for the straggler."""
    ((late, cost, slowdown),) = jobs.con.execute(
        "SELECT late_pct, cost_pct, slowdown FROM stragglers_v1(runs := ['slower clocks']) "
        "WHERE is_straggler"
    ).fetchall()
    assert slowdown == pytest.approx(1.3, abs=0.01)
    _, traces = jobs.runs["slower clocks"]
    waits = [sum(part.wait for part in trace.did.collectives) for trace in traces]
    length = max(event.end for event in traces[0].did.events)
    true_share = 100 * (sorted(waits)[2] - waits[2]) / length
    assert late == pytest.approx(true_share, rel=0.06)
    assert cost == pytest.approx(true_share, rel=0.06)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database whose table ``matched_collectives`` can be filled directly."""
    with database(tmp_path_factory.mktemp("noise")) as con:
        name = "derived.matched_collectives"
        con.execute(f"CREATE TABLE parts_of_all AS FROM {name}")
        for statement in sqltext.replace_view_by_table(name, "FROM parts_of_all"):
            con.execute(statement)
        yield con


def named(con: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, int]]:
    """Return the run and rank of each straggler in the runs with a name prefix."""
    return con.execute(
        "SELECT run, rank FROM stragglers_v1() WHERE is_straggler AND starts_with(run, $name)",
        {"name": f"{name} "},
    ).fetchall()


@pytest.mark.slow(reason="fuzz")
def test_of_a_thousand_jobs_without_a_late_rank_ten_name_one(
    empty: duckdb.DuckDBPyConnection,
) -> None:
    """In at most ten of a thousand jobs without a slow rank, a rank is named.

    There are fifty jobs of each size and kind of noise.
    """
    random = np.random.default_rng(2)
    for size in SIZES:
        for kind in KINDS_OF_NOISE:
            fill_jobs(empty, noise(kind, (50, 41, size), random), f"{kind} {size}")
    runs = {run for kind in KINDS_OF_NOISE for run, _ in named(empty, kind)}
    assert len(runs) <= 10, sorted(runs)


@pytest.mark.slow(reason="fuzz")
def test_lateness_of_one_deviation_is_found(empty: duckdb.DuckDBPyConnection) -> None:
    """A delay of one standard deviation is found in at least 60 % of the jobs of four ranks or more.

    Of two ranks, the only peer is as noisy as the late rank.
    """
    random = np.random.default_rng(3)
    found, others = 0, 0
    sizes = [size for size in SIZES if size > 2]
    for size in sizes:
        work = noise("normal", (60, 41, size), random)
        work[:, :, 1] += SHARE
        fill_jobs(empty, work, f"late {size}")
    for _, rank in named(empty, "late"):
        found += rank == 1
        others += rank != 1
    assert found >= 0.6 * 60 * len(sizes)
    assert others <= 2


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_strong_effect_is_certain_in_four_steps(
    empty: duckdb.DuckDBPyConnection, ranks: int
) -> None:
    """A rank that works half as long again as the others in each of four steps is a straggler.

    With two ranks, four blocks leave three degrees of freedom, whatever the effect.
    """
    work = noise("normal", (20, 5 * 4, ranks), np.random.default_rng(5))
    work[:, :, 1] += 0.5
    name = f"strong {ranks}"
    fill_jobs(empty, work, name, 4)
    assert {rank for _, rank in named(empty, name)} == {1}
    assert len(named(empty, name)) >= 19
