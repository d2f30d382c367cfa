"""The values that a rule compares: rows of both sides, paired by key, with one sample per step."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hta_sql.comparison.gate.rules import Rule
from hta_sql.comparison.sides import Side
from hta_sql.errors import ParameterError
from hta_sql.library.sql_files import query_sql

MAX_SAMPLED_STEPS = 8
"""Maximum number of steps that are queried separately; enough to estimate the noise."""

SAMPLED_FROM = {("kpis", "step_ns"): ("step_accounting", "step_ns")}
"""Column ─▶ per-step column whose mean over all ranks and steps it is."""

SAMPLE_COLUMNS = ("step", "iteration")
"""Columns that identify samples for the noise: profiler steps or serving iterations."""

Row = dict[str, Any]
Key = tuple[Any, ...]

_OF: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "max": max,
    "min": min,
    "sum": math.fsum,
}


@dataclass(frozen=True)
class Value:
    """A value on one side of the comparison.

    Attributes:
        number: The number; None if it is NULL in all rows.
        samples: The value in each step, if the rows have a step column.
        has_row: Whether the side has any row for the value.
    """

    number: float | None
    samples: tuple[float, ...] = ()
    has_row: bool = True


class ResultCache:
    """Cache of analysis results, so that several rules on one analysis run it once."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}

    def rows(self, side: Side, rule: Rule, steps: Sequence[int] | None = None) -> list[Row]:
        """Return the rows of the rule's analysis that satisfy its conditions.

        Raises:
            RankError: The run or a rank does not exist.
        """
        given = {**rule.parameters, **({} if steps is None else {"steps": list(steps)})}
        call = repr((id(side.store), side.run, rule.about.name, sorted(given.items())))
        if call not in self._tables:
            self._tables[call] = side.store.run(rule.analysis, runs=[side.run], **given).arrow()
        return chosen_rows(self._tables[call], rule)


def chosen_rows(table: pa.Table, rule: Rule) -> list[Row]:
    """Select the rows that satisfy the rule's conditions, with the columns that the rule needs."""
    wanted = {name: _as_list(value) for name, value in rule.where.items()}
    named = {column.name for column in rule.about.columns if not column.unit}
    columns = [
        name
        for name in table.column_names
        if name in {*named, *wanted, rule.column, *SAMPLE_COLUMNS}
    ]
    return [
        row
        for row in table.select(columns).to_pylist()
        if all(row[name] in values for name, values in wanted.items())
    ]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def key_columns(rule: Rule, sides: Iterable[Sequence[Row]]) -> list[str]:
    """Return the columns by which the rows of both sides are paired.

    These are the leading columns without a unit, up to the first Boolean column. If they do not
    identify a row, the other columns without a unit are added.

    Raises:
        ParameterError: No columns identify the rows.
    """
    if rule.by is not None:
        return list(rule.by)
    if rule.aggregate:
        return []
    columns = [column for column in rule.about.columns if column.name != "run"]
    key: list[str] = []
    for column in columns:
        if column.unit or column.type == "BOOLEAN":
            break
        key.append(column.name)
    found = [rows for rows in sides if rows]
    others = [c.name for c in columns if not c.unit and c.name not in key]
    for count in range(len(others) + 1):
        wanted = [*key, *others[:count]]
        if all(len({_key(row, wanted) for row in rows}) == len(rows) for rows in found):
            return wanted
    raise ParameterError(
        f"Rule {rule.name!r}: no columns of {rule.analysis} identify its rows. Set aggregate = "
        f"'median', or a where that selects one row."
    )


def _key(row: Row, key: Sequence[str]) -> Key:
    return tuple(row[name] for name in key)


def sample_column(rule: Rule) -> str | None:
    """Return the column that identifies the samples for the noise, or None if there is none."""
    columns = [column.name for column in rule.about.columns]
    return next((name for name in SAMPLE_COLUMNS if name in columns), None)


def values_of(
    rows: Sequence[Row], rule: Rule, key: Sequence[str], step_count: int
) -> dict[Key, Value]:
    """Return one value for each key, from the rows with that key.

    Args:
        rows: Rows of a side.
        rule: The rule, which defines the aggregation.
        key: Columns that identify a value.
        step_count: Number of steps of the side.

    Raises:
        ParameterError: Several rows have the same key, and the rule has no aggregate.
    """
    sampled = sample_column(rule)
    by_key: dict[Key, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        number = row[rule.column]
        numbers = by_key[_key(row, key)][row[sampled] if sampled else None]
        if number is not None and math.isfinite(number):
            numbers.append(number)
    if rule.aggregate:
        return {name: _aggregated(steps, rule) for name, steps in by_key.items()}
    if len(by_key) < len(rows):
        raise ParameterError(
            f"Rule {rule.name!r}: several rows for one {', '.join(key) or 'run'}: set an aggregate."
        )
    divisor = max(step_count, 1) if rule.per_step else 1
    single = {
        name: next((n / divisor for numbers in steps.values() for n in numbers), None)
        for name, steps in by_key.items()
    }
    siblings: dict[Key, list[float]] = defaultdict(list)
    at = key.index(sampled) if sampled in key else None
    for name, number in single.items():
        if at is not None and number is not None:
            siblings[name[:at] + name[at + 1 :]].append(number)
    return {
        name: Value(number, () if at is None else tuple(siblings[name[:at] + name[at + 1 :]]))
        for name, number in single.items()
    }


def _aggregated(steps: dict[Any, list[float]], rule: Rule) -> Value:
    """Aggregate within each step, then over steps; a sum is averaged over steps."""
    one = _OF[rule.aggregate or "mean"]
    samples = [one(numbers) for numbers in steps.values() if numbers]
    if not samples:
        return Value(None)
    over = _OF["mean" if rule.aggregate == "sum" else rule.aggregate or "mean"]
    return Value(over(samples), tuple(samples) if None not in steps else ())


def steps_of(side: Side, rule: Rule) -> list[int]:
    """Return the steps that the analysis counts; empty if it has no parameter ``steps``."""
    if "steps" not in (parameter.name for parameter in rule.about.parameters):
        return []
    given = {
        "run": side.run,
        "ranks": rule.parameters.get("ranks"),
        "steps": rule.parameters.get("steps"),
        "last": rule.parameters.get("include_last_profiler_step", False),
    }
    rows = side.store.sql(query_sql("comparison", "steps_in_scope"), given).rows()
    return [step for (step,) in rows]


def asked_by_step(
    answers: ResultCache, side: Side, rule: Rule, key: Sequence[str]
) -> dict[Key, list[float]]:
    """Return samples of each value by running an analysis without a step column on each step."""
    one = SAMPLED_FROM.get((rule.about.base_name, rule.column))
    if one:
        means = Rule(*one, parameters=rule.parameters, aggregate="mean", max=0)
        found = values_of(answers.rows(side, means), means, (), 1)
        return {name: list(value.samples) for name, value in found.items()}
    steps = steps_of(side, rule)
    stride = math.ceil(len(steps) / MAX_SAMPLED_STEPS) or 1
    samples: dict[Key, list[float]] = defaultdict(list)
    for step in steps[::stride]:
        rows = answers.rows(side, rule, [step])
        for name, value in values_of(rows, rule, key, 1).items():
            if value.number is not None:
                samples[name].append(value.number)
    return samples
