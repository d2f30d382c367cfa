"""Checks values, or the rows of a comparison, against the limits of a rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hta_sql.comparison.changes import Comparison
from hta_sql.comparison.gate.rules import BUDGETS, Rule
from hta_sql.comparison.gate.values import chosen_rows
from hta_sql.comparison.gate.verdicts import FAILED, INCONCLUSIVE, PASSED, SKIPPED, Judged, Verdict
from hta_sql.comparison.gate.words import change_text, limit_text
from hta_sql.text import counted


def broken_limits(rule: Rule, judged: Judged) -> list[tuple[str, str]]:
    """Return the name and the description of each broken limit, budgets first."""
    value, difference = judged.candidate or 0, judged.difference
    found = {"max": value, "min": -value}
    if difference and abs(difference) >= rule.ignore_below:
        share = judged.difference_pct
        # A change from 0 exceeds every percentage.
        pct = (float("inf") if difference > 0 else float("-inf")) if share is None else share
        found |= {"max_increase": difference, "max_decrease": -difference}
        found |= {"max_increase_pct": pct, "max_decrease_pct": -pct}
    order = [*BUDGETS, *(name for name in rule.limits if name not in BUDGETS)]
    return [
        (name, limit_text(name, rule.limits[name], rule.unit))
        for name in order
        if name in rule.limits and name in found and _exceeds(name, found[name], rule.limits[name])
    ]


def _exceeds(name: str, found: float, limit: float) -> bool:
    return found > (-limit if name == "min" else limit)


def missing_verdict(rule: Rule, *, baseline_has_it: bool) -> str:
    """Return the verdict on a missing value, according to the rule's ``required``."""
    if rule.required:
        return FAILED
    is_expected = rule.required is False and not baseline_has_it
    return SKIPPED if is_expected else INCONCLUSIVE


def verdict_of_both(comparison: Comparison | None, rule: Rule) -> Verdict:
    """Evaluate a rule on the rows of a comparison, which include their significance."""
    if comparison is None:
        return Verdict(rule, [Judged({}, None, None, FAILED, "the runs cannot be compared")])
    rows = {_name(row): row for row in comparison.rows.records()}
    chosen = [rows[_name(row)] for row in chosen_rows(comparison.rows.arrow(), rule)]
    judged = [_of_both(row, rule) for row in chosen]
    verdict = missing_verdict(rule, baseline_has_it=False)
    missing = Judged({}, None, None, verdict, "the comparison has no such row")
    return Verdict(rule, judged or [missing])


def _of_both(row: dict[str, Any], rule: Rule) -> Judged:
    key = {name: row[name] for name in ("level", "part", "subject") if row[name] is not None}
    steps = (row["control_step_count"], row["test_step_count"])
    noise = row["noise_ns"]
    if noise is not None and rule.column.endswith("_pct"):
        noise = 100 * noise / row["control_ns"] if row["control_ns"] else None
    judged = Judged(key, None, row[rule.column], PASSED, noise=noise, samples=steps)
    if judged.candidate is None:
        verdict = missing_verdict(rule, baseline_has_it=False)
        return replace(judged, verdict=verdict, reason="the comparison has no value")
    if rule.min_samples and min(steps) < rule.min_samples:
        few = f"only {counted(min(steps), 'sample')}; {rule.min_samples} are required"
        return replace(judged, verdict=INCONCLUSIVE, reason=few)
    broken = broken_limits(rule, judged)
    if not broken:
        return judged
    beyond = f"{change_text(None, judged.candidate, None, rule.unit)}; the limit is {broken[0][1]}"
    if row["noise_ns"] is None:
        return replace(
            judged,
            verdict=INCONCLUSIVE,
            reason=f"{beyond}; significance unknown: a side has only one step",
        )
    if not row["is_change"]:
        return replace(judged, verdict=INCONCLUSIVE, reason=f"{beyond}; {row['verdict']}")
    return replace(judged, verdict=FAILED, reason=beyond)


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["level"], row["part"], row["subject"]
