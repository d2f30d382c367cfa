"""A published production job gets the same verdicts when all its times are multiplied."""

from __future__ import annotations

from pathlib import Path

from hta_sql.library import sqltext
from tests.laws.changes import dilated
from tests.laws.jobs import jobs_of, write_job
from tests.pinned.answers import opened
from tests.pinned.jobs import make_catalog
from tests.production_job import needs_production, write_traces

STEPS = 4
SCALES = (1, 10, 100)
VERDICTS = {
    "stragglers": "rank, verdict, cause, subject, is_slow_stage, stage",
    "slow_links": "link_ranks, verdict, common_rank",
    "cluster_overview": "rank, step, verdict, is_slow_rank, is_slow_step, is_slow_stage",
    "what_if": "scenario, round(saved_pct, 3), bound, changed_ranks, reason_code",
    "top_costs": "position, cost, subject, worst_rank",
}
"""Analysis ─▶ the columns that say what is slow and why."""


@needs_production
def test_a_production_job_gets_the_same_verdicts_at_any_scale(tmp_path: Path) -> None:
    """Steps of seconds, of minutes and of hours are judged alike."""
    (job,) = jobs_of(write_traces(tmp_path / "job", STEPS))
    runs = {}
    for scale in SCALES:
        changed = dilated(scale)(job)
        assert changed is not None
        runs[f"x{scale}"] = write_job(changed.job, tmp_path / f"x{scale}")
    make_catalog(tmp_path / "catalog", runs)
    with opened(tmp_path / "catalog") as con:
        for analysis, columns in VERDICTS.items():
            answers = [
                con.execute(
                    f"SELECT {columns} {sqltext.call(analysis, {'runs': f'[{run!r}]'})}"
                ).fetchall()
                for run in runs
            ]
            assert answers[0] or analysis == "slow_links", analysis
            assert answers[1:] == [answers[0]] * (len(answers) - 1), analysis
