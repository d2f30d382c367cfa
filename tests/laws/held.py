"""Holds the laws against jobs: writes the changed jobs, runs the analyses, compares the answers."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import duckdb

from tests.laws import changes
from tests.laws.answers import Answer, answers_of, comparisons_of
from tests.laws.changes import Changed
from tests.laws.compared import differences
from tests.laws.effects import Effect
from tests.laws.jobs import Job, write_job
from tests.laws.laws import BASE, LAWS, Broken, broken, exempted
from tests.pinned.answers import opened
from tests.pinned.jobs import Runs, make_catalog

SEPARATOR = "."
LARGE = 60_000
"""Events of jobs from which the answers for all copies do not fit into memory together."""

ALONE = "alone"
"""Law: a run is answered as if it were the only one in the store."""

COMPARED = "compared"
"""Law: if the times of two runs are multiplied, their comparison follows."""

ALL = (*LAWS, ALONE, COMPARED)
SLOWER, DILATED, SLOWER_DILATED = "slower", "dilated_1000", "slower_dilated_1000"


def broken_by(
    jobs: Sequence[Job], folder: Path, laws: Collection[str] = ALL, analyses: Collection[str] = ()
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
    alone = {job: _folder_alone(job, folder, runs) for job in effects if ALONE in laws}
    one_by_one = sum(job.event_count for job in jobs) > LARGE
    with ExitStack() as stack:
        con = stack.enter_context(opened(folder))
        others = {job: stack.enter_context(opened(path)) for job, path in alone.items()}
        scales = {
            _run(law, job): effect.scale
            for job, by_law in effects.items()
            for law, effect in by_law.items()
        }
        found: list[Broken] = []
        for analysis, answers in answers_of(con, scales, analyses, one_by_one=one_by_one):
            for job, by_law in effects.items():
                base = answers[_run(BASE, job)]
                held = {law: effect for law, effect in by_law.items() if law in laws}
                found += _broken_by(job, held, analysis, base, answers)
                if job in others:
                    found += _beside_others(job, analysis, base, others[job])
        if COMPARED in laws:
            found += [
                one for job, by_law in effects.items() for one in _comparison(con, job, by_law)
            ]
    shutil.rmtree(folder)
    return found


def _written(
    job: Job, folder: Path, laws: Collection[str], runs: Runs
) -> Iterator[tuple[str, Effect]]:
    """Write a job and its changed copies, and yield what each change does."""
    for law, one in _changed(job, laws):
        # One copy at a time is in memory.
        if one is not None:
            paths = write_job(one.job, folder / job.name / law)
            order = one.order or paths
            runs[_run(law, job.name)] = {rank: paths[rank] for rank in order}
            yield law, one.effect


def _changed(job: Job, laws: Collection[str]) -> Iterator[tuple[str, Changed | None]]:
    """Yield the name of each copy and the copy, None if the change does not apply to the job."""
    yield BASE, changes.written_again(job)
    if COMPARED in laws and (slower := changes.slower(job)):
        yield SLOWER, slower
        yield SLOWER_DILATED, changes.dilated(1000)(slower.job)
    for law in laws:
        if law in LAWS:
            yield law, LAWS[law].change(job)


def _broken_by(
    job: str,
    effects: Mapping[str, Effect],
    analysis: str,
    base: Answer,
    answers: Mapping[str, Answer],
) -> Iterator[Broken]:
    for law, effect in effects.items():
        mine = {analysis: {BASE: base, law: answers[_run(law, job)]}}
        yield from broken(job, law, mine, effect)


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


def _folder_alone(job: str, folder: Path, runs: Runs) -> Path:
    """Make a catalog that contains only the unchanged job."""
    run, path = _run(BASE, job), folder / job / ALONE
    make_catalog(path, {run: runs[run]})
    return path


def _beside_others(
    job: str, analysis: str, base: Answer, con: duckdb.DuckDBPyConnection
) -> Iterator[Broken]:
    """Compare the answer for a job with that in a catalog of its own."""
    run = _run(BASE, job)
    for _, alone in answers_of(con, {run: 1}, [analysis]):
        for difference in differences(alone[run], base, Effect()):
            yield exempted(Broken(job, ALONE, analysis, difference))


def _run(law: str, job: str) -> str:
    return f"{job}{SEPARATOR}{law}"
