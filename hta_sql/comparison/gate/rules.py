"""Rules of a gate, and how they are read from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from hta_sql.errors import AnalysisError, ParameterError, nearest
from hta_sql.library.declared import Column
from hta_sql.library.objects import SqlObject
from hta_sql.library.parameters import check_parameters
from hta_sql.library.user_analyses import library_with

RELATIVE = ("max_increase_pct", "max_decrease_pct", "max_increase", "max_decrease")
"""Limits on the change from baseline to candidate."""

BUDGETS = ("max", "min")
"""Limits on the candidate alone."""

AGGREGATES = ("median", "mean", "max", "min", "sum")
NOISES = ("steps", "none")
DEFAULT_RULES = Path(__file__).with_name("default.toml")

OF_BOTH = "comparison"
"""The analysis whose rows already compare both sides."""

_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "VARCHAR": str,
    "BOOLEAN": bool,
    "DOUBLE": (int, float),
}


@dataclass(frozen=True)
class Rule:
    """Limits on a column of an analysis.

    Attributes:
        analysis: Name of the analysis, with or without version.
        column: Numeric column of the analysis.
        name: Name in the verdicts; default: composed of analysis, column and conditions.
        where: Column ─▶ value that rows must have, or a list of such values.
        parameters: Parameters of the analysis, except the run.
        max_increase_pct: Maximum increase relative to the baseline [%].
        max_decrease_pct: Maximum decrease relative to the baseline [%], because a collapsed
            measurement is not an improvement.
        max_increase: Maximum increase, in the unit of the column.
        max_decrease: Maximum decrease, in the unit of the column.
        max: Maximum of the candidate, regardless of baseline and noise.
        min: Minimum of the candidate, regardless of baseline and noise.
        ignore_below: Smaller differences, in the unit of the column, break no relative limit.
        aggregate: Aggregates all rows to one value: within each step, then over steps.
        by: Columns by which rows are paired. With ``aggregate``, there is one value for each
            combination of them. Default: the columns that identify a row; with ``aggregate``, none.
        per_step: Divide by the number of steps, for totals of runs with different numbers of steps.
        min_samples: The rule is inconclusive with fewer steps on a side (or fewer baseline runs, if
            they give the noise). Default: 2 if a limit is broken and the analysis counts by step.
        noise: ``none`` for exact values: then a broken limit is always a failure.
        required: Verdict on a missing value. None: inconclusive; true: failed; false: skipped if
            the baseline has no value either, otherwise inconclusive.

    Raises:
        AnalysisNotFoundError: There is no such analysis.
        ParameterError: An attribute is unknown or has the wrong type.
    """

    analysis: str
    column: str
    name: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    max_increase_pct: float | None = None
    max_decrease_pct: float | None = None
    max_increase: float | None = None
    max_decrease: float | None = None
    max: float | None = None
    min: float | None = None
    ignore_below: float = 0
    aggregate: str | None = None
    by: Sequence[str] | None = None
    per_step: bool = False
    min_samples: int | None = None
    noise: str = "steps"
    required: bool | None = None

    def __post_init__(self) -> None:
        _check(self)
        if not self.name:
            condition = ", ".join(f"{column} = {value}" for column, value in self.where.items())
            object.__setattr__(self, "name", f"{self.analysis}.{self.column} {condition}".rstrip())

    @cached_property
    def about(self) -> SqlObject:
        """The analysis; user analyses are found through ``HTA_SQL_ANALYSES``."""
        return library_with().find(self.analysis)

    @cached_property
    def limits(self) -> dict[str, float]:
        """The limits that are set."""
        given = {name: getattr(self, name) for name in (*RELATIVE, *BUDGETS)}
        return {name: limit for name, limit in given.items() if limit is not None}

    @property
    def is_relative(self) -> bool:
        """Whether the rule needs a baseline."""
        return any(name in RELATIVE for name in self.limits)

    @cached_property
    def unit(self) -> str | None:
        """Unit of the column."""
        return next(column.unit for column in self.about.columns if column.name == self.column)


@dataclass(frozen=True)
class Rules:
    """Content of a rules file: rules, and facts that may differ."""

    rules: tuple[Rule, ...]
    allow: tuple[str, ...] = ()


def read_rules(path: Path = DEFAULT_RULES) -> Rules:
    """Read a TOML file of ``[[rule]]`` tables.

    Args:
        path: The file; default: the default rules.

    Raises:
        ParameterError: The file is not TOML, or a rule is invalid; the message names file and rule.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: not valid TOML: {error}") from error
    try:
        tables, allow = _checked(content)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error
    rules: list[Rule] = []
    for number, table in enumerate(tables, 1):
        try:
            rules.append(_rule(table, {rule.name for rule in rules}))
        except AnalysisError as error:
            named = f" ({table['name']!r})" if isinstance(table.get("name"), str) else ""
            raise ParameterError(f"{path}: rule {number}{named}: {error}") from error
    return Rules(tuple(rules), tuple(allow))


def _checked(content: dict[str, Any]) -> tuple[list[Any], list[str]]:
    _known(content, ("rule", "allow"), "key")
    tables, allow = content.get("rule"), content.get("allow", [])
    is_list = isinstance(allow, list) and all(isinstance(fact, str) for fact in allow)
    _require(is_list, "allow must be a list of facts such as 'world size'.")
    is_list = isinstance(tables, list) and all(isinstance(table, dict) for table in tables)
    _require(is_list and bool(tables), "the file has no [[rule]] table.")
    return list(tables or ()), allow


def _rule(table: dict[str, Any], taken: set[str]) -> Rule:
    _known(table, [known.name for known in fields(Rule)], "key")
    missing = [name for name in ("analysis", "column") if name not in table]
    if missing:
        raise ParameterError(f"the key {missing[0]!r} is missing.")
    rule = Rule(**table)
    if rule.name in taken:
        raise ParameterError(f"another rule is already named {rule.name!r}; choose another name.")
    return rule


def _known(given: Iterable[str], known: Iterable[str], what: str) -> None:
    candidates = list(known)
    for name in given:
        if name not in candidates:
            raise ParameterError(
                f"no {what} {name!r}.{nearest(name, candidates)} Available: {', '.join(candidates)}."
            )


def _check(rule: Rule) -> None:
    """Raise if a rule has errors that can be found without a store."""
    for name, kind in (("analysis", str), ("column", str), ("name", str), ("noise", str)):
        _require(isinstance(getattr(rule, name), kind), f"{name} must be a string.")
    for name in ("where", "parameters"):
        _require(
            isinstance(getattr(rule, name), Mapping), f"{name} must be a table: {{column = value}}."
        )
    columns = {column.name: column for column in rule.about.columns}
    _known([rule.column, *rule.where, *(rule.by or ())], columns, f"column of {rule.analysis}")
    numbers = [name for name, column in columns.items() if column.type in _NUMBERS]
    _require(
        rule.column in numbers,
        f"{rule.column} is not numeric; numeric columns: {', '.join(numbers)}.",
    )
    for name, value in rule.where.items():
        _check_condition(columns[name], value)
    _require(
        "runs" not in rule.parameters,
        "parameters must not contain runs: the gate selects the run of each side.",
    )
    check_parameters(rule.about, rule.parameters)
    _check_limits(rule)
    if rule.aggregate is not None:
        _known([rule.aggregate], AGGREGATES, "aggregate")
    _known([rule.noise], NOISES, "noise")
    _require(rule.required in (None, True, False), "required must be true or false.")
    _check_sides(rule)


def _check_condition(column: Column, value: Any) -> None:
    expected = _TYPES.get(column.type, int)
    for one in value if isinstance(value, list) else [value]:
        is_swapped = isinstance(one, bool) != (column.type == "BOOLEAN")
        _require(
            isinstance(one, expected) and not is_swapped,
            f"where: {column.name} has type {column.type}, which does not match {one!r}.",
        )


def _check_limits(rule: Rule) -> None:
    names = (*RELATIVE, *BUDGETS)
    _require(bool(rule.limits), f"the rule has no limit; available limits: {', '.join(names)}.")
    for name, limit in {**rule.limits, "ignore_below": rule.ignore_below}.items():
        is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
        _require(is_number and limit == limit, f"{name} must be a number, not {limit!r}.")  # noqa: PLR0124 - nan
        _require(name in BUDGETS or limit >= 0, f"{name} must not be negative, but is {limit!r}.")
    counted = rule.min_samples
    is_count = isinstance(counted, int) and not isinstance(counted, bool) and counted >= 1
    _require(
        counted is None or is_count,
        f"min_samples must be an integer of at least 1, not {counted!r}.",
    )


def _check_sides(rule: Rule) -> None:
    if rule.about.base_name == OF_BOTH:
        fits = not (
            rule.is_relative or rule.aggregate or rule.per_step or rule.by or rule.parameters
        )
        _require(
            fits, f"rows of {OF_BOTH} describe both sides: set max or min on diff_pct or diff_ns."
        )
    elif "control_run" in (column.name for column in rule.about.columns):
        raise ParameterError(
            f"{rule.analysis} compares two runs; use {OF_BOTH} in the rule instead."
        )


def _require(truth: bool, message: str) -> None:
    if not truth:
        raise ParameterError(message)
