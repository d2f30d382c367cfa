"""Verdicts are right for random planted jobs that are hard to judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.drawn import KINDS, drawn
from tests.jobs.tables import database, derive, fill, rows_of
from tests.jobs.traces import capture

SEEDS = range(400, 403)


@pytest.mark.slow(reason="fuzz")
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_jobs_have_the_planted_verdicts(kind: str, tmp_path: Path) -> None:
    """Exactly the planted slow ranks and slow links are found, with the right cause."""
    jobs = {f"{kind} {seed}": drawn(kind, seed) for seed in SEEDS}
    with database(tmp_path) as con:
        fill(con, rows_of({run: (one.job, capture(one.job)) for run, one in jobs.items()}))
        derive(con)
        rows = con.execute("SELECT run, rank, verdict, cause FROM stragglers_v1()").fetchall()
        links = con.execute("SELECT DISTINCT run, common_host FROM slow_links_v1()").fetchall()
    for run, one in jobs.items():
        found = {rank: (verdict, cause) for r, rank, verdict, cause in rows if r == run}
        assert {rank: said for rank, said in found.items() if said[0] != "none"} == one.late, run
        has_link = any(cause == "slower transfer" for _, cause in found.values())
        assert has_link == one.has_slow_link, run
        slow_hosts = {f"node-{host}" for host in one.job.slow_host}
        assert {host for r, host in links if r == run and host} == slow_hosts, run
