"""Evaluates the limits of a rule on the values of two sides."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hta_sql.comparison.gate.limits import broken_limits, missing_verdict
from hta_sql.comparison.gate.noise import ENOUGH_RUNS, Chance
from hta_sql.comparison.gate.rules import BUDGETS, Rule
from hta_sql.comparison.gate.values import (
    SAMPLE_COLUMNS,
    Key,
    ResultCache,
    Value,
    asked_by_step,
    key_columns,
    steps_of,
    values_of,
)
from hta_sql.comparison.gate.verdicts import (
    FAILED,
    INCONCLUSIVE,
    PASSED,
    SKIPPED,
    VERDICTS,
    Judged,
    Verdict,
)
from hta_sql.comparison.gate.words import change_text, number_text
from hta_sql.comparison.sides import Side
from hta_sql.errors import nearest
from hta_sql.text import counted

NO_ROW = Value(None, has_row=False)


@dataclass(frozen=True)
class Judge:
    """State shared by the evaluation of all rules.

    Attributes:
        baselines: Runs that the candidate is compared with.
        candidate: The run to evaluate.
        chance: Estimator of the noise.
        answers: Cache of analysis results.
        limited: Differences between the sides that are not allowed and make a broken limit
            inconclusive; empty if there are none.
    """

    baselines: Sequence[Side]
    candidate: Side
    chance: Chance
    answers: ResultCache
    limited: str = ""

    def verdict(self, rule: Rule) -> Verdict:
        """Evaluate a rule.

        Raises:
            ParameterError: The rows of both sides cannot be paired.
        """
        sides = [*self.baselines, self.candidate]
        rows = [self.answers.rows(side, rule) for side in sides]
        key = key_columns(rule, rows)
        steps = [len(steps_of(side, rule)) for side in sides]
        values = [values_of(r, rule, key, s) for r, s in zip(rows, steps, strict=True)]
        names = list(dict.fromkeys(name for found in values for name in found)) or [()]
        has_baseline = any(value.number is not None for v in values[:-1] for value in v.values())
        judging = _Judging(self, rule, key, steps, of_many=len(names) > 1)
        judged = [
            judging.row(name, [found.get(name, NO_ROW) for found in values], has_baseline)
            for name in names
        ]
        if not rows[-1]:
            judged = [self._with_hint(row, rule) for row in judged]
        return Verdict(rule, sorted(judged, key=_severity))

    def _with_hint(self, row: Judged, rule: Rule) -> Judged:
        """Add a hint to the reason: the value in the candidate's rows closest to a condition."""
        bare = replace(rule, where={}, name=rule.name)
        found = self.answers.rows(self.candidate, bare)
        for column, wanted in rule.where.items():
            known = {str(other[column]) for other in found}
            if isinstance(wanted, str) and wanted not in known:
                return replace(row, reason=f"{row.reason}.{nearest(wanted, known)}".rstrip("."))
        return row


@dataclass(frozen=True)
class _Judging:
    judge: Judge
    rule: Rule
    key: Sequence[str]
    steps: Sequence[int]
    of_many: bool

    def row(self, name: Key, values: Sequence[Value], has_baseline: bool) -> Judged:
        """Evaluate one key, given its value in each baseline and, last, in the candidate."""
        *before, candidate = values
        known = [value.number for value in before if value.number is not None]
        samples = tuple(number for value in before for number in value.samples)
        baseline = Value(statistics.fmean(known) if known else None, samples)
        named = dict(zip(self.key, name, strict=False))
        judged = Judged(named, baseline.number, candidate.number, PASSED)
        judged = replace(judged, samples=self._counts(baseline, candidate))
        if candidate.number is None:
            return self._missing(judged, values, has_baseline)
        broken = broken_limits(self.rule, judged)
        is_over_budget = bool(broken) and broken[0][0] in BUDGETS
        if not known and self.rule.is_relative and not is_over_budget:
            return self._missing(judged, values, has_baseline)
        wanted = self.rule.min_samples
        if wanted and min(judged.samples) < wanted and len(known) < max(wanted, ENOUGH_RUNS):
            few = f"only {counted(min(judged.samples), 'sample')}; {wanted} are required"
            return replace(judged, verdict=INCONCLUSIVE, reason=few)
        if self.rule.noise != "none" and not is_over_budget:
            judged = replace(
                judged, noise=self._noise(name, baseline, candidate, known, bool(broken))
            )
        if not broken:
            return judged
        sides = change_text(
            judged.baseline, judged.candidate, judged.difference_pct, self.rule.unit
        )
        reason = f"{sides}; the limit is {broken[0][1]}"
        excuse = "" if is_over_budget else self._excuse(judged)
        verdict = INCONCLUSIVE if excuse else FAILED
        return replace(judged, verdict=verdict, reason=f"{reason}{excuse}")

    def _excuse(self, judged: Judged) -> str:
        """Return why a broken limit is inconclusive; an empty string if it is conclusive."""
        if self.rule.noise != "none":
            if judged.noise is None and self._counts_by_step() and self.rule.min_samples != 1:
                return "; significance unknown: a side has only one step"
            if judged.noise is not None and abs(judged.difference or 0) <= judged.noise:
                return f"; within noise (± {number_text(judged.noise, self.rule.unit)})"
        return f"; but the runs differ in {self.judge.limited}" if self.judge.limited else ""

    def _missing(self, judged: Judged, values: Sequence[Value], has_baseline: bool) -> Judged:
        """Evaluate a missing value; a row that only the candidate has is new, and is skipped."""
        is_row = any(value.has_row for value in values)
        if judged.baseline is not None:
            reason = f"the candidate has no {'value' if values[-1].has_row else 'such row'}"
        elif judged.candidate is None:
            reason = f"neither run has {'a value' if is_row else 'such a row'}"
        else:
            reason = f"the baseline has no {'value' if values[0].has_row else 'such row'}"
        is_new = has_baseline and judged.candidate is not None
        verdict = missing_verdict(self.rule, baseline_has_it=judged.baseline is not None)
        return replace(judged, verdict=SKIPPED if is_new else verdict, reason=reason)

    def _counts_by_step(self) -> bool:
        about = self.rule.about
        named = [*(column.name for column in about.columns), *(p.name for p in about.parameters)]
        return not {*SAMPLE_COLUMNS, "steps"}.isdisjoint(named)

    def _counts(self, baseline: Value, candidate: Value) -> tuple[int, int]:
        if baseline.samples or candidate.samples:
            return len(baseline.samples), len(candidate.samples)
        return sum(self.steps[:-1]), self.steps[-1]

    def _noise(
        self, name: Key, baseline: Value, candidate: Value, known: Sequence[float], asks: bool
    ) -> float | None:
        """Return the noise: the spread of the baseline runs if there are enough, else of the steps.

        An analysis without rows per step is run once for each step, if the caller enables this.
        """
        chance, many = self.judge.chance, self.of_many
        of_runs = chance.of_runs(known, of_many=many)
        if len(known) >= ENOUGH_RUNS:
            return of_runs
        aggregate = self.rule.aggregate
        if not set(SAMPLE_COLUMNS).isdisjoint(self.key):
            aggregate = "one"
        elif asks and not baseline.samples and not candidate.samples and min(self.steps) > 1:
            asked = [
                asked_by_step(self.judge.answers, side, self.rule, self.key).get(name, [])
                for side in (*self.judge.baselines, self.judge.candidate)
            ]
            baseline = replace(baseline, samples=tuple(n for side in asked[:-1] for n in side))
            candidate = replace(candidate, samples=tuple(asked[-1]))
        of_steps = chance.of_steps(baseline, candidate, aggregate=aggregate, of_many=many)
        return of_steps if of_runs is None or of_steps is None else max(of_runs, of_steps)


def _severity(row: Judged) -> tuple[int, float]:
    share = row.difference_pct
    return -VERDICTS.index(row.verdict), -abs(share if share is not None else 0)
