"""Verdicts of a gate: for each value, for each rule, and overall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hta_sql.comparison.gate.rules import Rule
from hta_sql.comparison.gate.words import limit_text
from hta_sql.comparison.sides import Side
from hta_sql.results.cells import cell_text
from hta_sql.text import cut_middle

PASSED, SKIPPED, INCONCLUSIVE, FAILED = "passed", "skipped", "inconclusive", "failed"
VERDICTS = (SKIPPED, PASSED, INCONCLUSIVE, FAILED)
"""Verdicts in increasing order of severity."""

_LONGEST = 60
"""Maximum length of a name in text output [characters]; JSON has the full name."""


@dataclass(frozen=True)
class Judged:
    """A value of a rule on both sides, with its verdict.

    Attributes:
        key: Identifies the value: column ─▶ value; empty if the rule has only one value.
        baseline: Value of the baseline (mean, if there are several runs); None if missing.
        candidate: Value of the candidate; None if missing.
        verdict: ``passed``, ``skipped``, ``inconclusive`` or ``failed``.
        reason: Reason for the verdict, unless it passed.
        noise: Noise of the difference; None if it is unknown, or was not determined because no
            limit is broken.
        samples: Number of samples (steps) of baseline and candidate.
    """

    key: Mapping[str, Any]
    baseline: float | None
    candidate: float | None
    verdict: str
    reason: str = ""
    noise: float | None = None
    samples: tuple[int, int] = (0, 0)

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline

    @property
    def difference_pct(self) -> float | None:
        """The difference relative to the baseline [%]; None if the baseline is 0."""
        if self.difference is None or not self.baseline:
            return None
        return 100 * self.difference / abs(self.baseline)

    def as_json(self) -> dict[str, Any]:
        """Return the value as a JSON-serializable dict."""
        return {
            "key": dict(self.key),
            "baseline": self.baseline,
            "candidate": self.candidate,
            "difference": self.difference,
            "difference_pct": self.difference_pct,
            "noise": self.noise,
            "samples": list(self.samples),
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Verdict:
    """The verdict of a rule.

    Attributes:
        rule: The rule.
        rows: Evaluated values, worst first.
    """

    rule: Rule
    rows: Sequence[Judged]

    @cached_property
    def verdict(self) -> str:
        """The worst verdict of the rule's values."""
        return worst(row.verdict for row in self.rows)

    @property
    def first(self) -> Judged:
        """The value that decides the verdict."""
        return self.rows[0]

    @property
    def notes(self) -> str:
        """A phrase that counts the values that decide the verdict, and the skipped values."""
        deciding = sum(row.verdict == self.verdict for row in self.rows)
        new = sum(row.verdict == SKIPPED for row in self.rows)
        parts = [f"{deciding} of {len(self.rows)} values"]
        if new and self.verdict != SKIPPED:
            parts.append(f"{new} not judged, because the baseline does not have them")
        return "; ".join(parts)

    @property
    def message(self) -> str:
        """Failure reason, or an empty string if the rule passed on complete data."""
        if self.verdict == PASSED and not any(row.verdict == SKIPPED for row in self.rows):
            return ""
        if len(self.rows) == 1:
            return self.first.reason
        named = f"{key_text(self.first.key)}: {self.first.reason}; " if self.first.reason else ""
        return f"{named}{self.notes}"

    @property
    def limits(self) -> str:
        """The limits of the rule as text."""
        return ", ".join(
            limit_text(name, limit, self.rule.unit) for name, limit in self.rule.limits.items()
        )

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON-serializable dict."""
        return {
            "name": self.rule.name,
            "analysis": self.rule.analysis,
            "column": self.rule.column,
            "where": dict(self.rule.where),
            "limits": self.rule.limits,
            "unit": self.rule.unit,
            "verdict": self.verdict,
            "message": self.message,
            "rows": [row.as_json() for row in self.rows],
        }


@dataclass(frozen=True)
class Outcome:
    """The result of a gate.

    Attributes:
        baselines: The run, or several repetitions, that the candidate was compared with.
        candidate: The run that was evaluated.
        level: ``comparable``, ``limited`` or ``not comparable``.
        reasons: Differences between the sides.
        is_allowed: Whether the differences that make the sides not comparable are allowed.
        verdicts: One verdict per rule.
        headline: Headline of ``hta-sql compare``; empty if the step cannot be compared.
    """

    baselines: Sequence[Side]
    candidate: Side
    level: str
    reasons: Sequence[str]
    is_allowed: bool
    verdicts: Sequence[Verdict]
    headline: str = ""

    @property
    def comparability(self) -> str:
        """The verdict on comparability alone."""
        return FAILED if self.level == "not comparable" and not self.is_allowed else PASSED

    @cached_property
    def verdict(self) -> str:
        """``passed``, ``failed`` or ``inconclusive``; the latter also if no rule was evaluated."""
        found = [verdict.verdict for verdict in self.verdicts]
        together = worst([*found, self.comparability])
        if together in (FAILED, INCONCLUSIVE):
            return together
        return PASSED if PASSED in found else INCONCLUSIVE

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON-serializable dict; values are in the unit of their column."""
        sides = [{"store": str(side.store.path), "run": side.run} for side in self.baselines]
        return {
            "verdict": self.verdict,
            "baselines": sides,
            "candidate": {"store": str(self.candidate.store.path), "run": self.candidate.run},
            "comparability": {
                "level": self.level,
                "reasons": list(self.reasons),
                "allowed": self.is_allowed,
                "verdict": self.comparability,
            },
            "headline": self.headline,
            "rules": [verdict.as_json() for verdict in self.verdicts],
        }


def worst(verdicts: Any) -> str:
    """Return the most severe verdict."""
    return max(verdicts, key=VERDICTS.index, default=SKIPPED)


def key_text(key: Mapping[str, Any]) -> str:
    """Format a key: ``rank 0, step 12``."""
    return ", ".join(
        f"{name} {cut_middle(cell_text(value, 'id'), _LONGEST)}" for name, value in key.items()
    )
