"""Write many small jobs with one group into the tables from which verdicts are computed."""

from __future__ import annotations

from typing import Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Kind = Literal["normal", "exponential", "lognormal", "hiccups", "lasting", "bursts", "wandering"]

WORK_NS = 1_000_000
TRANSFER_NS = 150_000
SHARE = 0.05


def noise(
    kind: Kind, shape: tuple[int, int, int], random: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Draw each rank's additional work before each collective, as a share of its normal work.

    The axes are jobs, collectives and ranks.
    """
    if kind in ("lasting", "bursts", "wandering"):
        return _lasting_noise(kind, shape, random)
    if kind == "exponential":
        return random.exponential(SHARE, shape)
    if kind == "lognormal":
        return SHARE * random.lognormal(0, 1, shape)
    if kind == "hiccups":
        rare = random.random(shape) < 0.01
        return random.normal(0, SHARE / 5, shape) + rare * random.exponential(1, shape)
    return random.normal(0, SHARE, shape)


def _lasting_noise(
    kind: Kind, shape: tuple[int, int, int], random: np.random.Generator
) -> npt.NDArray[np.float64]:
    jobs, collectives, ranks = shape
    if kind == "bursts":
        # About once in 100 collectives, a rank is delayed for three collectives.
        starts = random.random(shape) < 0.01
        lasts = starts | np.roll(starts, 1, axis=1) | np.roll(starts, 2, axis=1)
        return random.normal(0, SHARE / 5, shape) + lasts * random.exponential(0.5, shape)
    if kind == "wandering":
        # Each delay has a correlation of 0.7 with the previous one.
        delays = random.normal(0, SHARE, shape)
        for number in range(1, collectives):
            delays[:, number] = 0.7 * delays[:, number - 1] + 0.714 * delays[:, number]
        return delays
    # Each delay of a rank lasts five collectives.
    spells = random.normal(0, SHARE, (jobs, collectives // 5 + 1, ranks))
    return spells.repeat(5, axis=1)[:, :collectives] + random.normal(0, SHARE / 5, shape)


def fill_jobs(
    con: duckdb.DuckDBPyConnection, work: npt.NDArray[np.float64], name: str, per_step: int = 0
) -> None:
    """Add jobs in which every rank repeatedly works and then joins a collective of all ranks.

    Args:
        con: A database from tests/jobs/tables.py.
        work: Additional work as a share of the normal work. The axes are jobs, collectives and
            ranks.
        name: Prefix of the run names: `<name> 0`, `<name> 1`, …
        per_step: Number of collectives in a profiler step; 0 means no steps.
    """
    jobs, _, ranks = work.shape
    length = np.maximum(1000, WORK_NS * (1 + work)).astype(np.int64)
    last = length.max(axis=2)
    ends = (last + TRANSFER_NS).cumsum(axis=1)
    start = (
        length + np.concatenate([np.zeros((jobs, 1), np.int64), ends[:, :-1]], axis=1)[:, :, None]
    )
    wait = last[:, :, None] - length
    job, number, rank = np.indices(work.shape)
    first = np.argmax(length, axis=2)[:, :, None] == rank
    runs = pa.array([f"{name} {index}" for index in range(jobs)])
    columns = {
        "run": runs.take(pa.array(job.ravel())),
        "rank": pa.array(rank.ravel(), pa.int32()),
        "collective_id": pa.array(number.ravel() + 1),
        "ts": pa.array(start.ravel()),
        "dur": pa.array((ends[:, :, None] - start).ravel()),
        "start_ns": pa.array(start.ravel()),
        "end_ns": pa.array(np.broadcast_to(ends[:, :, None], work.shape).ravel()),
        "wait_ns": pa.array(wait.ravel()),
        "is_last": pa.array(first.ravel()),
        "is_startup": pa.array((number == 0).ravel()),
        "found_count": pa.array(np.full(work.size, ranks)),
    }
    con.register("parts", pa.table(columns))
    con.execute(
        "INSERT INTO derived.matched_collectives BY NAME "
        "SELECT *, 0 AS span, 1 AS channel_id, "
        "true AS is_complete, true AS end_times_match, false AS is_p2p, false AS ended_before_last_start, "
        "false AS clock_is_applied, 0 AS clock_mid_ts FROM parts"
    )
    con.unregister("parts")
    each = pa.table(
        {
            "run": runs.take(pa.array(np.arange(jobs).repeat(ranks))),
            "rank": pa.array(np.tile(np.arange(ranks), jobs), pa.int32()),
            "dur": pa.array(ends[:, -1].repeat(ranks)),
        }
    )
    con.register("each_rank", each)
    con.execute(
        "INSERT INTO stored.ranks BY NAME SELECT *, 0 AS span, 1 AS event_count FROM each_rank"
    )
    con.execute(
        "INSERT INTO stored.rank_scope BY NAME "
        "SELECT run, rank, 0 AS span, 0 AS offset_ns, false AS drops_last_step FROM each_rank"
    )
    con.unregister("each_rank")
    if per_step:
        _fill_steps(con, runs, ends, ranks, per_step)


def _fill_steps(
    con: duckdb.DuckDBPyConnection,
    runs: pa.Array,
    ends: npt.NDArray[np.int64],
    ranks: int,
    per_step: int,
) -> None:
    """Add steps that begin on all ranks at once, after the last collective of the previous step."""
    bounds = np.concatenate(
        [np.zeros((len(ends), 1), np.int64), ends[:, per_step - 1 :: per_step]], 1
    )
    job, step, rank = np.indices((len(ends), bounds.shape[1] - 1, ranks))
    table = pa.table(
        {
            "run": runs.take(pa.array(job.ravel())),
            "rank": pa.array(rank.ravel(), pa.int32()),
            "step": pa.array(step.ravel()),
            "ts": pa.array(bounds[job, step].ravel()),
            "dur": pa.array((bounds[job, step + 1] - bounds[job, step]).ravel()),
            "is_last": pa.array((step == bounds.shape[1] - 2).ravel()),
        }
    )
    con.register("each_step", table)
    con.execute("INSERT INTO stored.steps BY NAME SELECT *, 0 AS span FROM each_step")
    con.unregister("each_step")
