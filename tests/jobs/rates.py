"""Measure how often verdicts are wrong: ``python -m tests.jobs.rates``.

``--jobs 36`` counts ranks that are named in jobs without a slow rank, by kind of noise, ranks and
steps. ``--power`` counts how often a planted rank is found. Both fill the tables that the verdict
reads: no trace is written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import get_args

import duckdb
import numpy as np

from hta_sql.library import sqltext
from tests.jobs.noise import Kind, fill_jobs, noise
from tests.jobs.tables import database

SIZES, STEPS, PER_STEP = (2, 4, 8, 16, 64), (2, 3, 5, 10, 20), 4
NAMED = ("straggler", "intermittent")
POWER_SIZE, LATENESS, POWER_STEPS = 8, (0.025, 0.05, 0.1), (3, 5, 10, 20)


@contextmanager
def empty_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database whose table ``matched_collectives`` can be filled directly."""
    name = "derived.matched_collectives"
    with tempfile.TemporaryDirectory() as folder, database(Path(folder)) as con:
        con.execute(f"CREATE TABLE parts_of_all AS FROM {name}")
        for statement in sqltext.replace_view_by_table(name, "FROM parts_of_all"):
            con.execute(statement)
        yield con


def verdicts(con: duckdb.DuckDBPyConnection) -> list[tuple[str, int, str]]:
    """Return the run, rank and verdict of every rank whose verdict is not ``none``."""
    return con.execute(
        "SELECT run, rank, verdict FROM stragglers_v1() WHERE verdict <> 'none'"
    ).fetchall()


def noise_rates(jobs: int, seed: int) -> None:
    """Print how often a rank is named in jobs without a slow rank, by noise, ranks and steps."""
    random = np.random.default_rng(seed)
    drawn, found = Counter[tuple[object, str]](), Counter[tuple[object, str]]()
    for kind, size in product(get_args(Kind), SIZES):
        with empty_database() as con:
            for steps in STEPS:
                work = noise(kind, (jobs, steps * PER_STEP, size), random)
                fill_jobs(con, work, f"{steps}", PER_STEP)
                for key in (kind, f"{size} ranks", f"{steps} steps", "all"):
                    drawn[key, "jobs"] += jobs
            levels: dict[str, set[str]] = {}
            for run, _, verdict in verdicts(con):
                levels.setdefault(run, set()).add(verdict)
        for run, of_run in levels.items():
            steps_of_run = run.split()[0]
            worst = next((name for name in (*NAMED, "suspected") if name in of_run), "unknown")
            for key in (kind, f"{size} ranks", f"{steps_of_run} steps", "all"):
                found[key, worst] += 1
        sys.stderr.write(f"{kind}, {size} ranks: done\n")
    sys.stdout.write("named per 1,000, jobs, stragglers, intermittent, suspected, unknown\n")
    for (key, _), count in drawn.items():
        each = [found[key, name] for name in (*NAMED, "suspected", "unknown")]
        rate = 1000 * sum(each[:2]) / count
        sys.stdout.write(f"{key!s:12} {rate:5.1f} {count:6d}  {each}\n")


def power(jobs: int, seed: int) -> None:
    """Print how often a planted slow rank is found or suspected, by delay and step count."""
    random = np.random.default_rng(seed)
    for late, steps in product(LATENESS, POWER_STEPS):
        with empty_database() as con:
            work = noise("normal", (jobs, steps * PER_STEP, POWER_SIZE), random)
            work[:, :, 1] += late
            fill_jobs(con, work, "late", PER_STEP)
            rows = verdicts(con)
        found = sum(rank == 1 and verdict in NAMED for _, rank, verdict in rows)
        seen = sum(rank == 1 and verdict in (*NAMED, "suspected") for _, rank, verdict in rows)
        others = sum(rank != 1 and verdict in NAMED for _, rank, verdict in rows)
        sys.stdout.write(
            f"{late:5.1%} late, {steps:2d} steps: {found} found, {seen} found or suspected of {jobs}, "
            f"{others} others named\n"
        )


def main() -> None:
    """Measure the false positive rate, or with ``--power`` the detection rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=36, help="jobs of each combination")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draws")
    parser.add_argument("--power", action="store_true", help="plant a late rank")
    chosen = parser.parse_args()
    (power if chosen.power else noise_rates)(chosen.jobs, chosen.seed)


if __name__ == "__main__":
    main()
