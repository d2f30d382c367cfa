"""What a gate says: of each value, of each rule, of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hta_sql.exports.comparison import Side
from hta_sql.exports.gate.rules import Rule
from hta_sql.exports.gate.words import limit_text
from hta_sql.results.cells import cell_text
from hta_sql.text import cut_middle

PASSED, SKIPPED, INCONCLUSIVE, FAILED = "passed", "skipped", "inconclusive", "failed"
VERDICTS = (SKIPPED, PASSED, INCONCLUSIVE, FAILED)
"""From what says least to what decides."""

_LONGEST = 60
"""Characters of a name in a text; in JSON it is whole."""


@dataclass(frozen=True)
class Judged:
    """A value of a rule, of both sides.

    Attributes:
        key: What names it: column ─▶ value; empty where a rule is about one value.
        baseline: What it was, the mean of several baseline runs; None: there is none.
        candidate: What it is; likewise.
        verdict: ``passed``, ``skipped``, ``inconclusive`` or ``failed``.
        reason: Why, unless it passed.
        noise: By how much the difference may be off by chance; None where that is not known, or
            was not asked since no limit is broken.
        samples: Steps of baseline and candidate that tell.
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
        """Candidate less baseline."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline

    @property
    def difference_pct(self) -> float | None:
        """The same, in percent of the baseline; None where that is 0."""
        if self.difference is None or not self.baseline:
            return None
        return 100 * self.difference / abs(self.baseline)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
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
    """What a rule says.

    Attributes:
        rule: The rule.
        rows: Its values, the worst first.
    """

    rule: Rule
    rows: Sequence[Judged]

    @cached_property
    def verdict(self) -> str:
        """The worst of its values."""
        return worst(row.verdict for row in self.rows)

    @property
    def first(self) -> Judged:
        """The value that decides."""
        return self.rows[0]

    @property
    def notes(self) -> str:
        """How many of its values decide, and how many were not judged."""
        deciding = sum(row.verdict == self.verdict for row in self.rows)
        new = sum(row.verdict == SKIPPED for row in self.rows)
        told = [f"{deciding} of {len(self.rows)} values"]
        if new and self.verdict != SKIPPED:
            told.append(f"not judged, since the baseline has none: {new}")
        return "; ".join(told)

    @property
    def message(self) -> str:
        """Why it is not passed; empty where it is and nothing was left out."""
        if self.verdict == PASSED and not any(row.verdict == SKIPPED for row in self.rows):
            return ""
        if len(self.rows) == 1:
            return self.first.reason
        named = f"{key_text(self.first.key)}: {self.first.reason}; " if self.first.reason else ""
        return f"{named}{self.notes}"

    @property
    def limits(self) -> str:
        """Its limits in words."""
        return ", ".join(
            limit_text(name, limit, self.rule.unit) for name, limit in self.rule.limits.items()
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
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
    """What a gate says.

    Attributes:
        baselines: What the candidate was held against, one run or several of the same.
        candidate: The run.
        level: ``comparable``, ``limited`` or ``not comparable``.
        reasons: What differs between the sides.
        is_allowed: Whether what makes them not comparable, if anything does, is allowed.
        verdicts: One for each rule.
        headline: What ``hta-sql compare`` says of the step; empty where it cannot.
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
        """What comparability alone says."""
        return FAILED if self.level == "not comparable" and not self.is_allowed else PASSED

    @cached_property
    def verdict(self) -> str:
        """``passed``, ``failed`` or ``inconclusive``, which it also is where nothing was judged."""
        found = [verdict.verdict for verdict in self.verdicts]
        together = worst([*found, self.comparability])
        if together in (FAILED, INCONCLUSIVE):
            return together
        return PASSED if PASSED in found else INCONCLUSIVE

    def as_json(self) -> dict[str, Any]:
        """Return it for programs; values are in the unit of their column."""
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
    """Choose what decides."""
    return max(verdicts, key=VERDICTS.index, default=SKIPPED)


def key_text(key: Mapping[str, Any]) -> str:
    """Write ``rank 0, step 12``."""
    return ", ".join(
        f"{name} {cut_middle(cell_text(value, 'id'), _LONGEST)}" for name, value in key.items()
    )
