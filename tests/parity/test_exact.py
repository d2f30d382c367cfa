"""Every number matches a brute-force computation to the nanosecond, on every public job.

The brute force shares no code with the SQL: it uses nested loops over events in integer
nanoseconds. There is no tolerance and no list of exceptions.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hta_sql import TraceStore
from tests.parity.exact_facts import Facts, Key, expected, measure, measure_steps
from tests.parity.jobs import EXACT, JOBS

pytestmark = pytest.mark.skipif(not JOBS, reason="the expected numbers are not here")

RECOMPUTED = [job for job in JOBS if job != "ascend_level0_2rank"]
"""CUDA, ROCm and MTIA jobs, which the brute force covers; test_ascend.py tests the Ascend job."""

SCOPES = {"all": True, "default": False}
SECTIONS = (
    "temporal",
    "class_sets",
    "comm_union",
    "comm_overlapped_by_compute",
    "overlap_pct",
    "exposed_comm",
    "exposed_memory",
    "idle",
    "launch",
    "memcpy",
    "n_gpu_ops",
    "n_kernel_names",
    "events",
)


@pytest.fixture(scope="module")
def measured(jobs_store: TraceStore) -> dict[str, dict[Key, Facts]]:
    """Return the facts of all ranks of all jobs, by scope."""
    return {
        scope: measure(jobs_store, everything=everything) for scope, everything in SCOPES.items()
    }


@pytest.fixture(scope="module")
def rank_of_file(jobs_store: TraceStore) -> dict[tuple[str, str], Key]:
    """Return (job, file name) ─▶ (run, rank); further captures of a rank are separate runs."""
    rows = jobs_store.sql("SELECT run, rank, source FROM ranks").rows()
    return {
        (run.split("-capture")[0], source.rsplit("/", 1)[-1]): (run, rank)
        for run, rank, source in rows
    }


def brute_force(job: str) -> dict[str, Any]:
    """Return the brute-force result for a job by file name."""
    ranks = json.loads((EXACT / f"{job}.json").read_text(encoding="utf-8"))["ranks"]
    return {rank["file"]: rank for rank in ranks.values()}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("job", RECOMPUTED)
def test_all_totals_are_exact(
    job: str,
    scope: str,
    measured: dict[str, dict[Key, Facts]],
    rank_of_file: dict[tuple[str, str], Key],
) -> None:
    """Times, overlaps, idle causes, launches, copies and counts equal those of the brute force."""
    for file, rank in brute_force(job).items():
        want = expected(rank[scope], everything=SCOPES[scope])
        got = measured[scope][rank_of_file[job, file]]
        assert {key: got[key] for key in SECTIONS} == {key: want[key] for key in SECTIONS}, file


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("job", RECOMPUTED)
def test_the_hundred_longest_kernels_are_exact(
    job: str,
    scope: str,
    measured: dict[str, dict[Key, Facts]],
    rank_of_file: dict[tuple[str, str], Key],
) -> None:
    """Each of the 100 longest kernels has the expected count, sum, minimum and maximum."""
    for file, rank in brute_force(job).items():
        want = expected(rank[scope], everything=SCOPES[scope])["kernels"]
        got = measured[scope][rank_of_file[job, file]]["kernels"]
        if len(want) == 100:
            got = {key: got.get(key) for key in want}
        assert got == want, file


@pytest.mark.parametrize("job", RECOMPUTED)
def test_profiler_steps_are_exact(
    job: str, jobs_store: TraceStore, rank_of_file: dict[tuple[str, str], Key]
) -> None:
    """The host's profiler steps have the numbers, starts and durations of the brute force."""
    steps = measure_steps(jobs_store)
    for file, rank in brute_force(job).items():
        assert steps.get(rank_of_file[job, file], []) == rank["steps"], file
