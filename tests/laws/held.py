"""Holds the laws against jobs: writes the changed jobs, runs the analyses, compares the answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.laws.answers import answers_of
from tests.laws.changes import Changed
from tests.laws.effects import Effect
from tests.laws.jobs import Job, write_job
from tests.laws.laws import BASE, LAWS, Broken, broken
from tests.pinned.answers import opened
from tests.pinned.jobs import Runs, make_catalog

SEPARATOR = "."


def broken_by(
    jobs: Iterable[Job], folder: Path, laws: Iterable[str] = LAWS, analyses: Iterable[str] = ()
) -> list[Broken]:
    """Return all answers for some jobs that break a law.

    The jobs and their changed copies are runs of one catalog.

    Args:
        jobs: The jobs; their names are unique.
        folder: New folder for traces and catalog, removed at the end.
        laws: Names of the laws.
        analyses: Names of the analyses to run; default: all.
    """
    runs: Runs = {}
    effects: dict[str, dict[str, Effect]] = {}
    for job in jobs:
        runs[_run(BASE, job.name)] = write_job(job, folder / job.name / BASE)
        effects[job.name] = {BASE: Effect()}
        for law in laws:
            changed = LAWS[law].change(job)
            if changed is not None:
                runs[_run(law, job.name)] = _written(changed, folder / job.name / law)
                effects[job.name][law] = changed.effect
    make_catalog(folder, runs)
    scales = {
        _run(law, job): effect.scale
        for job, by_law in effects.items()
        for law, effect in by_law.items()
    }
    with opened(folder) as con:
        answers = answers_of(con, scales, analyses)
    found = []
    for job_name, by_law in effects.items():
        mine = {
            analysis: {law: by_run[_run(law, job_name)] for law in by_law}
            for analysis, by_run in answers.items()
        }
        for law, effect in by_law.items():
            if law != BASE:
                found += broken(job_name, law, mine, effect)
    shutil.rmtree(folder)
    return found


def _run(law: str, job: str) -> str:
    return f"{job}{SEPARATOR}{law}"


def _written(changed: Changed, folder: Path) -> Mapping[int, str]:
    paths = write_job(changed.job, folder)
    return {rank: paths[rank] for rank in changed.order} if changed.order else paths
