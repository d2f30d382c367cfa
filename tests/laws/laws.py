"""The laws: a change of a trace, and which answers must follow from it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tests.laws import changes
from tests.laws.answers import Answer, Answers
from tests.laws.changes import Change
from tests.laws.compared import Difference, differences, verdicts
from tests.laws.effects import Effect, kind_of

EXEMPTIONS = Path(__file__).with_name("exemptions.csv")
BASE = "unchanged"
"""Name of the run with the job's own files."""


@dataclass(frozen=True)
class Broken:
    """An answer that does not follow.

    Attributes:
        job: Name of the job.
        law: Name of the law.
        analysis: Name of the analysis.
        difference: The first value that differs in a column.
        exemption: Reason why the answer may differ; empty if it may not.
    """

    job: str
    law: str
    analysis: str
    difference: Difference
    exemption: str = ""

    def __str__(self) -> str:
        return f"{self.job}: {self.law}: {self.analysis}.{self.difference}"


Check = Callable[[Answers, str, Effect], Iterator[tuple[str, Difference]]]
"""Yields (analysis, difference) for a run of a changed job."""


@dataclass(frozen=True)
class Law:
    """A change and its consequence.

    Attributes:
        change: The change.
        check: Finds answers that do not follow.
    """

    change: Change
    check: Check


def all_follow(answers: Answers, run: str, effect: Effect) -> Iterator[tuple[str, Difference]]:
    """Every answer follows."""
    for analysis, by_run in answers.items():
        compared = _without_exempt_rules(run, analysis, (by_run[BASE], by_run[run]))
        for difference in differences(*compared, effect):
            yield analysis, difference


OVER_RULES = frozenset({"position", "combined_saved_ns", "combined_saved_pct"})
"""Columns of advice that depend on all rules of a run."""


def _without_exempt_rules(
    law: str, analysis: str, answers: tuple[Answer, Answer]
) -> tuple[Answer, Answer]:
    """Drop the rows of exempt rules from both answers and, if there are any, what depends on them."""
    exempt = {e.rule for e in exemptions() if e.rule and e.covers("", law, analysis, e.column)}
    if not exempt or any(answer.error for answer in answers):
        return answers
    if not any(exempt & set(answer.column("rule")) for answer in answers):
        return answers
    left, right = (_without(answer, exempt | {"largest_loss"}) for answer in answers)
    return left, right


def _without(answer: Answer, rules: set[str]) -> Answer:
    kept = [at for at, column in enumerate(answer.columns) if column.name not in OVER_RULES]
    rows = [
        tuple(row[at] for at in kept)
        for row, rule in zip(answer.rows, answer.column("rule"), strict=True)
        if rule not in rules
    ]
    return Answer(tuple(answer.columns[at] for at in kept), rows)


def nobody_else_is_accused(
    answers: Answers, run: str, effect: Effect
) -> Iterator[tuple[str, Difference]]:
    """No analysis fails, and verdicts name no rank or link that they do not name already."""
    yield from _errors(answers, run)
    before, after = verdicts(answers, BASE, effect), verdicts(answers, run)
    for analysis in before:
        who = {row[0] for row in before[analysis]}
        for row in sorted(after[analysis], key=str):
            if row[0] not in who:
                yield analysis, Difference("verdict", str(sorted(who, key=str)), str(row))


def the_first_step_stays(
    answers: Answers, run: str, effect: Effect
) -> Iterator[tuple[str, Difference]]:
    """Nobody else is accused, and what is measured in the first of several steps stays."""
    yield from nobody_else_is_accused(answers, run, effect)
    if _step_count(answers, BASE) > 1:
        yield from _steps_stay(answers, run, effect, 1)


def earlier_steps_stay(
    answers: Answers, run: str, effect: Effect
) -> Iterator[tuple[str, Difference]]:
    """No analysis fails, and what is measured in the steps that are left stays."""
    yield from _errors(answers, run)
    yield from _steps_stay(answers, run, effect, _step_count(answers, run))


def all_steps_stay(answers: Answers, run: str, effect: Effect) -> Iterator[tuple[str, Difference]]:
    """Nobody else is accused, and what is measured in steps stays."""
    yield from nobody_else_is_accused(answers, run, effect)
    yield from _steps_stay(answers, run, effect, _step_count(answers, BASE))


def _errors(answers: Answers, run: str) -> Iterator[tuple[str, Difference]]:
    for analysis, by_run in answers.items():
        if by_run[run].error and not by_run[BASE].error:
            yield analysis, Difference("error", "rows", by_run[run].error)


STEP_ROWS = frozenset({"step_accounting", "step_breakdown", "profiler_steps", "cluster_step_trace"})
"""Analyses with rows for each step that depend on nothing after it."""


def _steps_stay(
    answers: Answers, run: str, effect: Effect, count: int
) -> Iterator[tuple[str, Difference]]:
    for analysis in answers.keys() & STEP_ROWS:
        before, after = (_of_steps(answers[analysis][one], count) for one in (BASE, run))
        for difference in differences(before, after, effect):
            yield analysis, difference


def _step_count(answers: Answers, run: str) -> int:
    return max((len(_steps(answers[name][run])) for name in answers.keys() & STEP_ROWS), default=0)


def _steps(answer: Answer) -> list[int]:
    return [] if answer.error else sorted(set(answer.column("step")) - {None})


def _of_steps(answer: Answer, count: int) -> Answer:
    """Return the rows of the first steps, without points in time."""
    if answer.error:
        return answer
    kept = [at for at, column in enumerate(answer.columns) if kind_of(column) != "point"]
    steps, first = answer.column("step"), _steps(answer)[:count]
    rows = [
        tuple(row[at] for at in kept)
        for row, step in zip(answer.rows, steps, strict=True)
        if step in first
    ]
    return Answer(tuple(answer.columns[at] for at in kept), rows)


LAWS: Mapping[str, Law] = {
    "written_again": Law(changes.written_again, all_follow),
    "dilated_10": Law(changes.dilated(10), all_follow),
    "dilated_1000": Law(changes.dilated(1_000), all_follow),
    "dilated_100000": Law(changes.dilated(100_000), all_follow),
    "shifted": Law(changes.shifted, all_follow),
    "stray_event": Law(changes.with_stray_event, all_steps_stay),
    "clocks_apart": Law(changes.with_clocks_apart, nobody_else_is_accused),
    "long_step": Law(changes.with_long_step, the_first_step_stays),
    "long_collective": Law(changes.with_long_collective, the_first_step_stays),
    "other_ids": Law(changes.with_other_ids, all_follow),
    "ranks_permuted": Law(changes.with_ranks_permuted, all_follow),
    "other_order": Law(changes.with_ranks_in_another_order, all_follow),
    "events_reordered": Law(changes.with_events_reordered, all_follow),
    "last_step_cut": Law(changes.without_last_step, earlier_steps_stay),
    "no_groups": Law(changes.without_group_metadata, nobody_else_is_accused),
    "jittered_ends": Law(changes.with_jittered_ends, nobody_else_is_accused),
}
"""Name, which is also the name of the changed run ─▶ law."""


@dataclass(frozen=True)
class Exemption:
    """An answer that rightly does not follow: a line of exemptions.csv.

    The column ``rule=<name>`` stands for all columns in rows of a rule of advice.
    """

    job: str
    law: str
    analysis: str
    column: str
    reason: str

    @property
    def rule(self) -> str:
        """Name of the exempt rule; empty if the exemption is about a column."""
        return self.column.removeprefix("rule=") if self.column.startswith("rule=") else ""

    def covers(self, job: str, law: str, analysis: str, column: str) -> bool:
        """Return whether a difference is exempt."""
        return (
            fnmatchcase(job, self.job)
            and fnmatchcase(law, self.law)
            and fnmatchcase(analysis, self.analysis)
            and fnmatchcase(column, self.column)
        )


@cache
def exemptions() -> tuple[Exemption, ...]:
    """Return the exemptions."""
    with EXEMPTIONS.open(encoding="utf-8", newline="") as file:
        return tuple(Exemption(**line) for line in csv.DictReader(file))


def exempted(found: Broken) -> Broken:
    """Return the same answer with the reason of its exemption, if there is one."""
    at = found.job, found.law, found.analysis, found.difference.column
    return replace(found, exemption=next((e.reason for e in exemptions() if e.covers(*at)), ""))


def broken(job: str, law: str, answers: Answers, effect: Effect) -> list[Broken]:
    """Return the answers for a job that break a law, exempt ones with the reason."""
    return [
        exempted(Broken(job, law, analysis, difference))
        for analysis, difference in LAWS[law].check(answers, law, effect)
    ]
