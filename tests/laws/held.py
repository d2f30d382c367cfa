"""Holds the laws against jobs: writes the changed jobs, runs the analyses, compares the answers."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import duckdb

from tests.laws import changes
from tests.laws.answers import Answers, answers_of, comparisons_of
from tests.laws.changes import Changed
from tests.laws.compared import differences
from tests.laws.effects import Effect
from tests.laws.jobs import Job, write_job
from tests.laws.laws import BASE, LAWS, Broken, broken, exempted
from tests.pinned.answers import opened
from tests.pinned.jobs import Runs, make_catalog

SEPARATOR = "."
ALONE = "alone"
"""Law: a run is answered as if it were the only one in the store."""

COMPARED = "compared"
"""Law: if the times of two runs are multiplied, their comparison follows."""

ALL = (*LAWS, ALONE, COMPARED)
SLOWER, DILATED, SLOWER_DILATED = "slower", "dilated_1000", "slower_dilated_1000"


def broken_by(
    jobs: Iterable[Job], folder: Path, laws: Collection[str] = ALL, analyses: Collection[str] = ()
) -> list[Broken]:
    """Return all answers for some jobs that break a law.

    The jobs and their changed copies are runs of one catalog.

    Args:
        jobs: The jobs; their names are unique.
        folder: New folder for traces and catalogs, removed at the end.
        laws: Names of the laws.
        analyses: Names of the analyses to run; default: all.
    """
    runs: Runs = {}
    effects = {job.name: dict(_written(job, folder, laws, runs)) for job in jobs}
    make_catalog(folder, runs)
    with opened(folder) as con:
        scales = {
            _run(law, job): effect.scale
            for job, by_law in effects.items()
            for law, effect in by_law.items()
        }
        answers = answers_of(con, scales, analyses)
        found = [
            one for job, by_law in effects.items() for one in _broken_by(job, by_law, answers, laws)
        ]
        if COMPARED in laws:
            found += [
                one for job, by_law in effects.items() for one in _comparison(con, job, by_law)
            ]
    if ALONE in laws:
        for job in effects:
            found += _beside_others(job, runs, answers, folder / job / ALONE, analyses)
    shutil.rmtree(folder)
    return found


def _written(
    job: Job, folder: Path, laws: Collection[str], runs: Runs
) -> Iterator[tuple[str, Effect]]:
    """Write a job and its changed copies, and yield what each change does."""
    changed: dict[str, Changed | None] = {BASE: changes.written_again(job)}
    if COMPARED in laws and (slower := changes.slower(job)):
        changed[SLOWER] = slower
        changed[SLOWER_DILATED] = changes.dilated(1000)(slower.job)
    changed |= {law: LAWS[law].change(job) for law in laws if law in LAWS}
    for law, one in changed.items():
        if one is not None:
            paths = write_job(one.job, folder / job.name / law)
            order = one.order or paths
            runs[_run(law, job.name)] = {rank: paths[rank] for rank in order}
            yield law, one.effect


def _broken_by(
    job: str, effects: Mapping[str, Effect], answers: Answers, laws: Collection[str]
) -> list[Broken]:
    mine = {
        analysis: {law: by_run[_run(law, job)] for law in effects}
        for analysis, by_run in answers.items()
    }
    return [one for law in effects if law in laws for one in broken(job, law, mine, effects[law])]


def _comparison(
    con: duckdb.DuckDBPyConnection, job: str, effects: Mapping[str, Effect]
) -> list[Broken]:
    """Compare the job with a slower copy, and both multiplied."""
    if not {SLOWER_DILATED, DILATED} <= effects.keys():
        return []
    pairs = {BASE: (BASE, SLOWER), COMPARED: (DILATED, SLOWER_DILATED)}
    named = {name: (_run(one, job), _run(two, job)) for name, (one, two) in pairs.items()}
    effect = replace(effects[DILATED], is_ordered=False)  # equal differences are in any order
    answers = comparisons_of(con, named, {BASE: 1, COMPARED: effect.scale})
    return [
        exempted(Broken(job, COMPARED, analysis, difference))
        for analysis, by_run in answers.items()
        for difference in differences(by_run[BASE], by_run[COMPARED], effect)
    ]


def _beside_others(
    job: str, runs: Runs, answers: Answers, folder: Path, analyses: Collection[str]
) -> list[Broken]:
    """Compare the answers for a job with those in a catalog of its own."""
    run = _run(BASE, job)
    make_catalog(folder, {run: runs[run]})
    with opened(folder) as con:
        alone = answers_of(con, {run: 1}, analyses)
    return [
        exempted(Broken(job, ALONE, analysis, difference))
        for analysis, by_run in answers.items()
        for difference in differences(alone[analysis][run], by_run[run], Effect())
    ]


def _run(law: str, job: str) -> str:
    return f"{job}{SEPARATOR}{law}"
