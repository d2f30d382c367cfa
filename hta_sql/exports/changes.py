"""What changed between two sides, of one store or of two, and whether that can be said at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hta_sql.errors import ParameterError
from hta_sql.exports.comparison import Side
from hta_sql.library.parameters import narrowing
from hta_sql.results.result import Result
from hta_sql.text import time_text

_CHANGES = (
    "SELECT $control AS control_run, $test AS test_run, c.* "
    "FROM lib.compared_contents('control_contents', 'test_contents', $renamed) AS c "
    "ORDER BY list_position(['step', 'part', 'row'], c.level), abs(c.diff_ns) DESC, c.part, c.what"
)
_FACTS = (
    "SELECT $control AS control_run, $test AS test_run, f.* "
    "FROM lib.compared_facts('control_facts', 'test_facts', 'contents') AS f ORDER BY f.place"
)
_RUN_FACTS = "SELECT f.* FROM lib.run_facts([$run], $ranks) AS f"

LEVELS = ("comparable", "limited", "not comparable")
_SOME_STEPS = ("slower in some steps", "faster in some steps")


@dataclass(frozen=True)
class Comparison:
    """Two sides, compared.

    Attributes:
        control: What the test is measured against.
        test: What is measured.
        rows: Columns of the analysis ``comparison``: the step, its parts, what is in them.
        facts: Columns of the analysis ``comparability``.
    """

    control: Side
    test: Side
    rows: Result
    facts: Result

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return self.rows.records()

    @cached_property
    def _facts(self) -> list[dict[str, Any]]:
        return self.facts.records()

    @cached_property
    def level(self) -> str:
        """``comparable``, ``limited`` or ``not comparable``."""
        verdicts = {fact["verdict"] for fact in self._facts}
        return next((level for level in reversed(LEVELS) if level in verdicts), LEVELS[0])

    def of_level(self, level: str) -> list[dict[str, Any]]:
        """Return the rows of a level: ``step``, ``part`` or ``row``."""
        return [row for row in self._rows if row["level"] == level]

    @cached_property
    def step(self) -> dict[str, Any]:
        """The row of the step."""
        return self.of_level("step")[0]

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """Rows whose difference is beyond chance and not small, the largest first."""
        return [row for row in self.of_level("row") if row["is_change"]]

    @cached_property
    def reasons(self) -> list[str]:
        """Facts that are not the same on both sides, worst first."""
        return [fact_text(fact) for fact in self.differing]

    @cached_property
    def differing(self) -> list[dict[str, Any]]:
        """The rows of these facts."""
        facts = [fact for fact in self._facts if fact["verdict"] in LEVELS[1:]]
        return sorted(facts, key=lambda fact: -LEVELS.index(fact["verdict"]))

    @cached_property
    def message(self) -> str:
        """The headline: by how much a step changed, whether chance does that, what it is most."""
        step = self.step
        if step["diff_ns"] == 0 and not self.changes:
            return f"Nothing changed: a step takes {time_text(step['control_ns'])} on both sides."
        same_way = [row for row in self.changes if row["diff_ns"] * step["diff_ns"] > 0]
        told = [f"{_difference_text(step)}{_trust(step)}.", *self._distribution()]
        if not same_way:
            return " ".join([*told, *self._most_of_it()])
        most = same_way[0]
        change = f"{most['what']} ({most['part']}), {signed_time(most['diff_ns'])}"
        beyond = "" if most["noise_ns"] is None else " beyond noise"
        return " ".join([*told, f"Largest change{beyond}: {change}."])

    def _most_of_it(self) -> list[str]:
        """Return the row that differs most in the direction of the step, if the step differs."""
        step = self.step
        rows = [r for r in self.of_level("row") if r["diff_ns"] * step["diff_ns"] > 0]
        if not rows or step["verdict"] in ("unchanged", "within noise"):
            return (
                ["Nothing in it changed beyond noise in that direction."] if step["diff_ns"] else []
            )
        change = f"{rows[0]['what']} ({rows[0]['part']}), {signed_time(rows[0]['diff_ns'])}"
        return [f"Most of it: {change}, which may be chance."]

    def _distribution(self) -> list[str]:
        """Return which steps make the mean differ from the median, a sentence a side."""
        sides = (
            (self.control.run, self.step["control_slow_steps"]),
            (self.test.run, self.step["test_slow_steps"]),
        )
        return [f"{run}: {slow}." for run, slow in sides if slow]

    def as_json(self) -> dict[str, Any]:
        """Return all of it for programs; times are ns of a step, ``changes`` without noise."""
        step = self.step
        return {
            "baseline": {"store": str(self.control.store.path), "run": self.control.run},
            "candidate": {"store": str(self.test.store.path), "run": self.test.run},
            "comparability": {
                "level": self.level,
                "reasons": self.reasons,
                "facts": [_renamed(fact, skipped=("place",)) for fact in self._facts],
            },
            "headline": {**_difference(step), "message": self.message},
            "parts": [_difference(row) for row in self.of_level("part")],
            "changes": [_difference(row) for row in self.changes],
        }


def compare_steps(
    control: Side,
    test: Side,
    *,
    renamed: Sequence[str] | None = None,
    include_last_profiler_step: bool = False,
) -> Comparison:
    """Compare the steps of two sides.

    Args:
        control: What the test is measured against.
        test: What is measured.
        renamed: Operators and kernels that the test calls otherwise, each as
            ``name_in_test=name_in_control``.
        include_last_profiler_step: Whether to include the last profiler step.

    Raises:
        RankError: No such run or rank.
        ParameterError: A side has no such steps, or a renaming has no ``=``.
    """
    for pair in renamed or ():
        if "=" not in pair:
            raise ParameterError(f"{pair!r} is not a renaming such as new_name=old_name.")
    sides = (control, test)
    contents = [side.contents(include_last_profiler_step) for side in sides]
    for side, found in zip(sides, contents, strict=True):
        if not len(found):
            known = ", ".join(map(str, side.known_steps()[:20])) or "none"
            raise ParameterError(f"Run {side.run!r} has no such steps to compare; it has: {known}.")
    names = {"control": control.run, "test": test.run}
    given = narrowing({"ranks": control.ranks or test.ranks, "steps": control.steps or test.steps})
    rows = control.store.run_over(
        "comparison",
        _CHANGES,
        {"control_contents": contents[0].arrow(), "test_contents": contents[1].arrow()},
        {**names, "renamed": list(renamed) if renamed else None},
        given=given,
    )
    told = [
        side.store.sql(_RUN_FACTS, {"run": side.run, "ranks": side.ranks}).arrow() for side in sides
    ]
    facts = control.store.run_over(
        "comparability",
        _FACTS,
        {"control_facts": told[0], "test_facts": told[1], "contents": rows.arrow()},
        names,
        given=given,
    )
    return Comparison(control, test, rows, facts)


def signed_time(ns: float) -> str:
    """Write ``+1.250 ms``."""
    return f"{'-' if ns < 0 else '+'}{time_text(abs(ns))}"


def _difference_text(step: dict[str, Any]) -> str:
    if step["diff_ns"] == 0:
        return f"A step takes {time_text(step['control_ns'])} on both sides"
    longer = "longer" if step["diff_ns"] > 0 else "shorter"
    median = ""
    if min(_step_counts(step)) > 2 and step["control_median_ns"]:
        share = 100 * (step["test_median_ns"] / step["control_median_ns"] - 1)
        median = f"; median {share:+.1f} %"
    return (
        f"A step takes {time_text(abs(step['diff_ns']))} {longer} on average "
        f"({time_text(step['control_ns'])} ▸ {time_text(step['test_ns'])}, "
        f"{step['diff_pct'] or 0:+.1f} %{median})"
    )


def _trust(step: dict[str, Any]) -> str:
    """Return how certain the difference of the step is."""
    noise = step["noise_ns"]
    if noise is None:
        return "; with one step on a side nothing tells whether that is chance"
    within = f"(± {time_text(noise)})"
    told = f", {step['verdict']} {within}"
    if step["is_change"] and abs(step["diff_ns"]) <= noise:
        sides = sorted((step["control_ns"], step["test_ns"]))
        faster = "slower" if step["diff_ns"] > 0 else "faster"
        few = min(_step_counts(step))
        told = f": {sides[1] / sides[0]:.1f} x {faster}; {few} steps a side are too few for a test"
    elif step["is_change"]:
        told = f", beyond noise {within}"
    elif step["verdict"] in _SOME_STEPS:
        told = f", {step['verdict']}"
    elif noise > step["control_ns"]:
        told = "; the steps of each side differ by more than the runs do"
    elif step["verdict"] == "unknown":
        told = f"; unknown whether that is chance {within}"
    return told


def _step_counts(step: dict[str, Any]) -> tuple[int, int]:
    return step["control_step_count"], step["test_step_count"]


def fact_text(fact: dict[str, Any]) -> str:
    """Write ``world size: 8 ▸ 16``."""
    if fact["control_value"] == fact["test_value"]:
        return f"{fact['fact']}: {fact['control_value']}"
    return f"{fact['fact']}: {fact['control_value']} ▸ {fact['test_value']}"


_NAMES = {"control": "baseline", "test": "candidate", "diff": "difference"}


def _renamed(row: dict[str, Any], skipped: Sequence[str]) -> dict[str, Any]:
    """Give columns the names that gates and dashboards know: baseline and candidate."""
    renamed = {}
    for name, value in row.items():
        first, _, rest = name.partition("_")
        if name not in (*skipped, "control_run", "test_run"):
            renamed[f"{_NAMES.get(first, first)}{'_' if rest else ''}{rest}"] = value
    return renamed


def _difference(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what says nothing on its level."""
    return {
        name: value
        for name, value in _renamed(row, skipped=("level",)).items()
        if value is not None or name.endswith("_ns")
    }
