"""In planted jobs, the overview finds slow ranks, hosts and stages, and its sums are right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean
from typing import Any

import duckdb
import pytest

from tests.jobs.conftest import Jobs
from tests.jobs.kinds import CAUSES, DP, KINDS, QUIET
from tests.jobs.simulator import Collective
from tests.jobs.tables import database, derive, fill, rows_of
from tests.jobs.traces import capture

SLOW_HOST = replace(DP, ranks=8, hosts=2, slower_clock=dict.fromkeys(range(4, 8), 1.2))

SLOW_STAGE = replace(DP, ranks=8, stages=4, slower_clock=dict.fromkeys((2, 3), 1.5))


def rows(con: duckdb.DuckDBPyConnection, name: str, run: str) -> list[dict[str, Any]]:
    """Return the rows of an analysis for one run."""
    found = con.sql(f"FROM {name}(runs := [$run])", params={"run": run})
    return list(found.to_arrow_table().to_pylist())


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Simulate a job with a slow second host, and a pipeline with a slow second stage."""
    made = {"host": SLOW_HOST, "stage": SLOW_STAGE}
    with database(tmp_path_factory.mktemp("slow")) as con:
        fill(con, rows_of({run: (job, capture(job)) for run, job in made.items()}))
        derive(con)
        yield con


@pytest.mark.parametrize("run", [run for run, job in CAUSES.items() if job.ranks > 2])
def test_the_late_rank_is_slow_and_nobody_else(jobs: Jobs, run: str) -> None:
    """Only the slow rank is named, and in most steps if its delay is large."""
    job, _ = jobs.runs[run]
    found = defaultdict(list)
    for row in rows(jobs.con, "cluster_overview", run):
        found[row["rank"]].append(row)
    for rank, of_rank in found.items():
        share = mean(row["verdict"] == "slow rank" for row in of_rank)
        distance = mean(row["rank_z"] for row in of_rank)
        if rank not in job.late:
            assert (share, distance < 1) == (0, True)
        else:
            assert distance >= 3
            assert distance < 5 or share >= (0.4 if job.late[rank] == "throttling" else 0.8)


@pytest.mark.parametrize("run", QUIET)
def test_noise_names_nobody(jobs: Jobs, run: str) -> None:
    """In jobs with noise but without a slow rank, no rank is named."""
    verdicts = {row["verdict"] for row in rows(jobs.con, "cluster_overview", run)}
    assert verdicts <= {"as usual", None}


def test_a_slow_stage_is_named(slow: duckdb.DuckDBPyConnection) -> None:
    """Exactly the two ranks of the slow stage get the verdict ``slow stage``, in every step."""
    found = rows(slow, "cluster_overview", "stage")
    assert len(found) == 8 * (SLOW_STAGE.steps - 1)
    for row in found:
        assert row["is_slow_stage"] == (row["rank"] in {2, 3})
        assert row["verdict"] == ("slow stage" if row["rank"] in {2, 3} else "as usual")


def test_a_slow_host_is_named_instead_of_its_ranks(slow: duckdb.DuckDBPyConnection) -> None:
    """Exactly the ranks of the slow host get the verdict ``slow host``, in every step."""
    found = rows(slow, "cluster_overview", "host")
    assert len(found) == 8 * (SLOW_HOST.steps - 1)
    for row in found:
        assert row["host_name"] == SLOW_HOST.host_of(row["rank"])
        assert row["verdict"] == ("slow host" if row["rank"] >= 4 else "as usual")


@pytest.mark.parametrize("run", KINDS)
def test_parts_sum_to_the_step_and_buckets_to_the_busy_time(jobs: Jobs, run: str) -> None:
    """The parts of a step sum to its duration, and time buckets sum to the busy time."""
    for row in rows(jobs.con, "cluster_overview", run):
        parts = ("compute_ns", "transfer_ns", "unmatched_ns", "wait_ns", "memory_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["step_ns"]
        assert min(row[part] for part in parts) >= 0
        # Whose waits are unknown is not compared.
        if is_unmatched := 100 * row["unmatched_ns"] >= row["step_ns"] > 0:
            assert row["rank_z"] is None
            assert not row["is_slow_rank"]
        assert (row["non_wait_ns"] is None) == is_unmatched
    busy: dict[int, int] = defaultdict(int)
    for row in rows(jobs.con, "utilization_over_time", run):
        busy[row["rank"]] += row["busy_ns"] or 0
        assert row["busy_pct"] is None or 0 <= row["busy_pct"] <= 100
    _, traces = jobs.runs[run]
    for trace in traces:
        kernels = [(e.ts, e.end) for e in trace.events if e.event.stream is not None]
        assert busy[trace.did.rank] == union(kernels)


def union(intervals: list[tuple[int, int]]) -> int:
    """Return the total time that is covered by at least one interval."""
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize(
    ("run", "name", "verdict"),
    [
        ("slower kernel", "flash_fwd_kernel", {1: "slow rank"}),
        ("slower kernel", "ampere_sgemm_128x64_tn", {}),
        ("bigger batch", "ampere_sgemm_128x64_tn", {2: "slow rank"}),
    ],
)
def test_a_kernel_is_slow_on_the_rank_that_it_was_planted_on(
    jobs: Jobs, run: str, name: str, verdict: dict[int, str]
) -> None:
    """A slow kernel is reported only on the rank on which it was planted."""
    found = [row for row in rows(jobs.con, "operator_across_ranks", run) if row["name"] == name]
    assert {row["rank"] for row in found} == set(range(4))
    for row in found:
        assert row["verdict"] == verdict.get(row["rank"], "as usual"), row


def test_the_kth_occurrence_is_the_same_on_hosts_with_other_clocks(jobs: Jobs) -> None:
    """Start times of an occurrence agree within 0.5 ms, although clocks differ by 3 ms."""
    starts = defaultdict(list)
    for row in rows(jobs.con, "operator_across_ranks", "hosts 3 ms apart"):
        if row["name"] == "ampere_sgemm_128x64_tn":
            starts[row["step"], row["occurrence"]].append(row["start_ns"])
    assert all(len(of_one) == 8 for of_one in starts.values())
    assert max(max(of_one) - min(of_one) for of_one in starts.values()) < 500_000


@pytest.mark.parametrize("run", ["slower clocks", "hosts 3 ms apart", "pipeline"])
def test_the_ranks_of_the_longest_wait_come_as_simulated(jobs: Jobs, run: str) -> None:
    """The collective with the longest waits is shown with its ranks in simulated order."""
    found = rows(jobs.con, "collective_arrivals", run)
    assert [row["position"] for row in found] == list(range(1, len(found) + 1))
    parts = {(part.rank, part.event): part for part in jobs.collectives(run)}
    together = [parts[row["rank"], row["event_id"]] for row in found]
    assert len({part.key for part in together}) == 1
    assert len(together) == len(together[0].group)
    for row, part in zip(found, together, strict=True):
        assert abs(row["wait_ns"] - part.wait) <= 2_000
        assert row["is_last"] == part.is_last
    judged: dict[object, list[Collective]] = defaultdict(list)
    for part in parts.values():
        if part.kind != "pp" and part.number > 0:
            judged[part.key].append(part)
    longest = max(sum(part.wait for part in of_one) for of_one in judged.values())
    assert sum(part.wait for part in together) >= longest - 2_000 * len(together)


@pytest.mark.parametrize(
    "name",
    [
        *("cluster_overview", "operator_across_ranks", "utilization_over_time"),
        *("special_operators", "collective_arrivals"),
    ],
)
def test_equal_rows_on_any_number_of_threads(jobs: Jobs, name: str) -> None:
    """The rows, including scores, do not depend on the number of threads."""
    found = []
    for threads in (1, 2, 5):
        jobs.con.execute(f"SET threads = {threads}")
        found.append(jobs.con.execute(f"FROM {name}()").fetchall())
    assert found[0] == found[1] == found[2]
