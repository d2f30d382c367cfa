"""Compares the steps of two runs: changes, comparability and causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hta_sql.comparison.headline import headline
from hta_sql.comparison.sides import Side, compare
from hta_sql.errors import ParameterError
from hta_sql.library.parameters import narrowing
from hta_sql.library.sql_files import query_sql
from hta_sql.results.result import Result

LEAST_STEP_SHARE = 0.01
"""Minimum share of a recording in steps; with less, the steps are not those of the job."""

LEVELS = ("comparable", "limited", "not comparable")


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        control: The baseline.
        test: The side that is compared with it.
        rows: Rows of the analysis ``comparison``: the step, its parts, and the contents of parts.
        facts: Rows of the analysis ``comparability``.
        causes: Rows of ``lib.compared_causes``: what made the step longer or shorter, and on which
            ranks, largest first. Empty if the change of the step is not significant.
        operators: Rows of ``trace_diff`` whose counts differ; empty unless the steps are equal.
        without_steps: Runs whose steps last almost nothing, as after a single prof.step().
        predictions: Rows of ``predictions``: the time that the replay of the control predicts for
            each scenario, next to the time of the test; empty unless requested.
    """

    control: Side
    test: Side
    rows: Result
    facts: Result
    without_steps: Sequence[str] = ()
    causes: Sequence[dict[str, Any]] = ()
    operators: Sequence[dict[str, Any]] = ()
    predictions: Sequence[dict[str, Any]] = ()

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
        """The row of level ``step``."""
        return self.of_level("step")[0]

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """Rows with a significant and relevant difference, largest first."""
        return [row for row in self.of_level("row") if row["is_change"]]

    @cached_property
    def reasons(self) -> list[str]:
        """Facts that differ between the sides, as strings, worst first."""
        return [fact_text(fact) for fact in self.differing]

    @cached_property
    def differing(self) -> list[dict[str, Any]]:
        """Facts that differ between the sides, worst first."""
        facts = [fact for fact in self._facts if fact["verdict"] in LEVELS[1:]]
        return sorted(facts, key=lambda fact: -LEVELS.index(fact["verdict"]))

    @cached_property
    def message(self) -> str:
        """The headline: change of the step, its significance, and its main cause."""
        if self.without_steps:
            return (
                f"The steps of {' and '.join(self.without_steps)} last less than "
                f"{LEAST_STEP_SHARE:.0%} of the recording: they are not the steps of the job. Call "
                "prof.step() once in each iteration of the loop."
            ).replace("%", " %")
        if self._recorded_steps == {"recorded", "none recorded"}:
            return (
                "Only one side has profiler steps: a step is not compared with a whole capture. Record "
                "both with prof.step() in the loop, or both without."
            )
        runs = (self.control.run, self.test.run)
        return headline(runs, self._rows, self.causes, self.operators, self.unit)

    @property
    def _recorded_steps(self) -> set[str]:
        (steps,) = (fact for fact in self._facts if fact["fact"] == "steps")
        return {steps["control_value"], steps["test_value"]}

    @property
    def unit(self) -> str:
        """What is compared: ``step``, or ``capture`` if neither side has steps."""
        return "capture" if self._recorded_steps == {"none recorded"} else "step"

    @property
    def names(self) -> tuple[str, str]:
        """Names of the sides in headings, which differ."""
        runs = (self.control.run, self.test.run)
        if runs[0] != runs[1]:
            return runs
        names = tuple(f"{run}{_narrowed(side)}" for run, side in zip(runs, self.sides, strict=True))
        return (names[0], names[1]) if names[0] != names[1] else ("control", "test")

    @property
    def sides(self) -> tuple[Side, Side]:
        """Control and test."""
        return self.control, self.test

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON; times are ns per step, ``changes`` excludes noise."""
        step = self.step
        return {
            "baseline": {"store": str(self.control.store.path), "run": self.control.run},
            "candidate": {"store": str(self.test.store.path), "run": self.test.run},
            "comparability": {
                "level": self.level,
                "reasons": self.reasons,
                "facts": [_renamed(fact, skipped=("position",)) for fact in self._facts],
            },
            "headline": {**_difference(step), "message": self.message},
            "parts": [_difference(row) for row in self.of_level("part")],
            "changes": [_difference(row) for row in self.changes],
            "causes": [_renamed(cause, skipped=("position",)) for cause in self.causes],
        } | (
            {"predictions": [_renamed(row, skipped=("position",)) for row in self.predictions]}
            if self.predictions
            else {}
        )


def compare_steps(
    control: Side,
    test: Side,
    *,
    renamed: Sequence[str] | None = None,
    include_last_profiler_step: bool = False,
    predicted: bool = False,
) -> Comparison:
    """Compare the steps of two sides.

    Args:
        control: The baseline.
        test: The side that is compared with it.
        renamed: Operators and kernels that were renamed, each as
            ``name_in_test=name_in_control``.
        include_last_profiler_step: Whether to include the last profiler step.
        predicted: Whether to include predictions: ``what_if`` replays all ranks of the control.

    Raises:
        RankError: A run or rank does not exist.
        ParameterError: A side has no such steps, a renaming has no ``=``, or predictions are
            requested although a side has only some ranks or steps.
    """
    compared = _compared(control, test, renamed, include_last_profiler_step)
    return replace(compared, predictions=predictions(control, test)) if predicted else compared


def predictions(control: Side, test: Side) -> list[dict[str, Any]]:
    """Return the predicted time of each scenario next to the time measured in a later run.

    Args:
        control: The run whose replay predicts, with all ranks and steps.
        test: The run that was measured later, with all ranks and steps.

    Raises:
        ParameterError: A side has only some ranks or steps.
    """
    if any(side.ranks is not None or side.steps is not None for side in (control, test)):
        raise ParameterError("Predictions apply to whole runs: omit ranks and steps.")
    tables = {
        "control_scenarios": control.store.sql(
            query_sql("comparison", "scenarios"), {"run": control.run}
        ).arrow(),
        "test_steps": test.store.sql(
            query_sql("comparison", "measured_steps"), {"run": test.run}
        ).arrow(),
    }
    names = {"control": control.run, "test": test.run}
    return control.store.run_over(
        "predictions", query_sql("comparison", "predictions"), tables, names
    ).records()


def _compared(
    control: Side, test: Side, renamed: Sequence[str] | None, include_last_profiler_step: bool
) -> Comparison:
    """Compare the steps of two sides, without predictions."""
    for pair in renamed or ():
        if "=" not in pair:
            raise ParameterError(f"{pair!r} is not a valid rename: expected new_name=old_name.")
    sides = (control, test)
    contents = [side.contents(include_last_profiler_step) for side in sides]
    for side, found in zip(sides, contents, strict=True):
        if not len(found):
            known = ", ".join(map(str, side.known_steps()[:20])) or "none"
            raise ParameterError(
                f"Run {side.run!r} has no times in the requested steps; its steps: {known}, of which "
                "the last is excluded unless include_last_profiler_step is true."
            )
    names = {"control": control.run, "test": test.run}
    given = narrowing({"ranks": control.ranks or test.ranks, "steps": control.steps or test.steps})
    rows = control.store.run_over(
        "comparison",
        query_sql("comparison", "changes"),
        {"control_contents": contents[0].arrow(), "test_contents": contents[1].arrow()},
        {**names, "renamed": list(renamed) if renamed else None},
        given=given,
    )
    side_facts = [
        side.store.sql(
            query_sql("comparison", "run_facts"), {"run": side.run, "ranks": side.ranks}
        ).arrow()
        for side in sides
    ]
    facts = control.store.run_over(
        "comparability",
        query_sql("comparison", "facts"),
        {"control_facts": side_facts[0], "test_facts": side_facts[1], "contents": rows.arrow()},
        names,
        given=given,
    )
    short = [
        side.run for side in sides if (share := side.step_share()) and share < LEAST_STEP_SHARE
    ]
    comparison = Comparison(control, test, rows, facts, list(dict.fromkeys(short)))
    if comparison.step["diff_ns"] == 0 and not comparison.changes:
        last = include_last_profiler_step
        return replace(comparison, operators=_other_counts(comparison, renamed or (), last))
    if comparison.step["verdict"] in ("unchanged", "within noise"):
        return comparison
    idle = [side.idle(include_last_profiler_step) for side in sides]
    late = [side.stragglers() for side in sides]
    causes = control.store.run_over(
        "comparison",
        query_sql("comparison", "causes"),
        {
            "control_contents": contents[0].arrow(),
            "test_contents": contents[1].arrow(),
            "control_idle_rows": idle[0].arrow(),
            "test_idle_rows": idle[1].arrow(),
            "control_late_rows": late[0].arrow(),
            "test_late_rows": late[1].arrow(),
        },
        {},
        given=given,
    )
    return replace(comparison, causes=causes.records())


def _other_counts(
    comparison: Comparison, renamed: Sequence[str], include_last_profiler_step: bool
) -> list[dict[str, Any]]:
    """Return the operators whose counts differ although the steps are equal."""
    step = comparison.step
    if step["control_step_count"] != step["test_step_count"]:
        return []
    known = {name for pair in renamed for name in pair.split("=", 1)}
    rows = compare(
        comparison.control,
        comparison.test,
        include_last_profiler_step=include_last_profiler_step,
    ).records()
    return [row for row in rows if row["diff_count"] and row["name"] not in known]


def _narrowed(side: Side) -> str:
    """Return the ranks and steps of a side in parentheses; empty if it has all."""
    chosen = [
        f"{what} {','.join(map(str, values))}"
        for what, values in (("ranks", side.ranks), ("steps", side.steps))
        if values is not None
    ]
    return f" ({'; '.join(chosen)})" if chosen else ""


def side_name(side: Side) -> str:
    """Return the run of a side, with its ranks and steps if they were selected."""
    return f"{side.run}{_narrowed(side)}"


def fact_text(fact: dict[str, Any]) -> str:
    """Format a fact: ``world size: 8 ▸ 16``."""
    if fact["control_value"] == fact["test_value"]:
        return f"{fact['fact']}: {fact['control_value']}"
    return f"{fact['fact']}: {fact['control_value']} ▸ {fact['test_value']}"


_NAMES = {"control": "baseline", "test": "candidate", "diff": "difference"}


def _renamed(row: dict[str, Any], skipped: Sequence[str]) -> dict[str, Any]:
    """Rename columns for gates and dashboards: control becomes baseline, test becomes candidate."""
    renamed = {}
    for name, value in row.items():
        first, _, rest = name.partition("_")
        if name not in (*skipped, "control_run", "test_run"):
            renamed[f"{_NAMES.get(first, first)}{'_' if rest else ''}{rest}"] = value
    return renamed


def _difference(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the columns that are always NULL on its level; times are retained."""
    return {
        name: value
        for name, value in _renamed(row, skipped=("level",)).items()
        if value is not None or name.endswith("_ns")
    }
