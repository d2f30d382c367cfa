"""Tests of gate evaluation: values, samples, noise and exceeded limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.comparison.gate import Judged, Rule
from hta_sql.comparison.gate.limits import broken_limits
from hta_sql.comparison.gate.noise import Chance
from hta_sql.comparison.gate.values import Value, key_columns, values_of
from hta_sql.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

TIMES = {(rank, step): 100 * step + rank for rank in (0, 1) for step in (1, 2, 3)}
ROWS: list[dict[str, Any]] = [
    {"run": "a", "rank": rank, "step": step, "compute_ns": ns} for (rank, step), ns in TIMES.items()
]


def rule(**options: Any) -> Rule:
    """Return a rule that limits the compute time of steps."""
    return Rule("step_accounting", "compute_ns", max=1, **options)


def test_rows_are_paired_by_what_names_them() -> None:
    """Rows are paired by rank and step.

    Each row is a value, and the rows of the same rank in all steps are its samples.
    """
    key = key_columns(rule(), [ROWS])
    assert key == ["rank", "step"]
    values = values_of(ROWS, rule(), key, 3)
    assert values[1, 2] == Value(201, (101, 201, 301))


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("mean", Value(200.5, (100.5, 200.5, 300.5))),
        ("sum", Value(401, (201, 401, 601))),
        ("max", Value(301, (101, 201, 301))),
        ("min", Value(100, (100, 200, 300))),
        ("median", Value(200.5, (100.5, 200.5, 300.5))),
    ],
)
def test_an_aggregate_is_one_of_steps(aggregate: str, expected: Value) -> None:
    """An aggregate is computed per step and then over the steps, so any two runs are comparable."""
    assert values_of(ROWS, rule(aggregate=aggregate), (), 3) == {(): expected}


def test_an_aggregate_may_be_one_of_each_rank() -> None:
    """An aggregate can be computed per rank by naming that column in ``by``."""
    wanted = rule(aggregate="mean", by=["rank"])
    values = values_of(ROWS, wanted, key_columns(wanted, [ROWS]), 3)
    assert values == {(0,): Value(200, (100, 200, 300)), (1,): Value(201, (101, 201, 301))}


def test_unknown_is_no_number() -> None:
    """NULL and infinite values count as missing, and totals can be divided by the step count."""
    rows: list[dict[str, Any]] = [{"rank": 0, "step": 1, "compute_ns": None}]
    assert values_of(rows, rule(), ["rank", "step"], 1) == {(0, 1): Value(None)}
    rows[0]["compute_ns"] = float("inf")
    assert values_of(rows, rule(aggregate="mean"), (), 1) == {(): Value(None)}
    counts = Rule("ops_by_name", "op_count", per_step=True, max=1)
    found = values_of([{"name": "a", "op_count": 30}], counts, ["name"], 10)
    assert found == {("a",): Value(3)}


def test_rows_that_nothing_tells_apart_are_refused() -> None:
    """Rows with equal keys are refused, because they cannot be paired."""
    with pytest.raises(ParameterError, match="identify its rows"):
        key_columns(rule(), [[*ROWS, ROWS[0]]])
    with pytest.raises(ParameterError, match="several rows for one rank"):
        values_of(ROWS, rule(by=["rank"]), ["rank"], 3)


@pytest.fixture
def chance(ingest_trace: Callable[..., TraceStore]) -> Chance:
    """Return the noise estimator, which looks up quantiles in a store."""
    return Chance(ingest_trace("annotated_operators.json"))


def test_steps_and_runs_are_samples(chance: Chance) -> None:
    """Noise is estimated from steps by Student's t, and from two runs by their difference.

    A single run has no noise estimate.
    """
    two = Value(2.0, (1.0, 3.0))
    assert chance.of_steps(two, two, aggregate="mean", of_many=False) == pytest.approx(
        9.925 * 2**0.5
    )
    assert chance.of_steps(two, two, aggregate="one", of_many=True) == pytest.approx(31.599 * 2)
    assert chance.of_steps(two, Value(2.0, (2.0,)), aggregate="mean", of_many=False) is None
    same = Value(20.0, (2.0, 2.0))
    assert chance.of_steps(same, same, aggregate=None, of_many=False) == 0
    total = Value(20.0, (1.0, 3.0))  # ten times its samples' mean: ten times the noise
    assert chance.of_steps(total, same, aggregate=None, of_many=False) == pytest.approx(99.25)
    assert chance.of_runs([5.0], of_many=False) is None
    assert chance.of_runs([5.0, 7.0], of_many=False) == 2
    assert chance.of_runs([5.0, 6.0, 7.0], of_many=False) == pytest.approx(9.925 * (4 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("limits", "baseline", "candidate", "broken"),
    [
        ({"max_increase_pct": 5}, 100, 105, []),
        ({"max_increase_pct": 5}, 100, 106, ["max_increase_pct"]),
        ({"max_increase_pct": 5}, 0, 1, ["max_increase_pct"]),
        ({"max_increase_pct": 5}, 0, 0, []),
        ({"max_increase_pct": 5, "ignore_below": 10}, 100, 106, []),
        ({"max_increase_pct": 5}, -100, -90, ["max_increase_pct"]),
        ({"max_decrease_pct": 50}, 100, 10, ["max_decrease_pct"]),
        ({"max_increase": 5}, 100, 106, ["max_increase"]),
        ({"max_decrease": 5}, 100, 106, []),
        ({"max_decrease": 5}, 100, 94, ["max_decrease"]),
        ({"max_increase": 0, "max": 105, "min": 1}, 100, 106, ["max", "max_increase"]),
        ({"min": 7}, None, 6, ["min"]),
        ({"min": 7}, None, 7, []),
    ],
)
def test_limits_in_both_directions(
    limits: dict[str, Any], baseline: float | None, candidate: float, broken: list[str]
) -> None:
    """Relative limits need a baseline, and any change from zero exceeds any percentage."""
    judged = Judged({}, baseline, candidate, "passed")
    wanted = Rule("step_accounting", "compute_ns", **limits)
    assert [name for name, _ in broken_limits(wanted, judged)] == broken
