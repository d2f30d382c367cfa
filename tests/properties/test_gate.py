"""The gate passes noise, fails planted changes, and reports what it cannot judge."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.comparison.gate import Outcome, Rule, gate
from hta_sql.comparison.sides import Side
from tests.properties.planted import NOISE, few, many

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

__all__ = ["few", "many"]

STEP = Rule("kpis", "step_ns", name="step", max_increase_pct=1, max_decrease_pct=20)
COMPUTE = Rule(
    "step_accounting",
    "compute_ns",
    name="compute",
    aggregate="mean",
    max_increase_pct=1.5,
    max_decrease_pct=80,
)
PART = Rule(
    "comparison",
    "diff_pct",
    name="part",
    where={"level": "part", "part": "compute"},
    max=1.5,
    min=-80,
)
OPERATORS = Rule(
    "ops_by_name",
    "op_count",
    name="operators",
    where={"side": "host", "category": "cpu_op"},
    per_step=True,
    noise="none",
    max_increase_pct=5,
    max_decrease_pct=5,
)
KERNEL = Rule(
    "gpu_kernels_by_name",
    "mean_ns",
    name="kernel",
    where={"rank": 0, "class": "communication"},
    max_increase_pct=30,
    max_decrease_pct=50,
)
RULES = (STEP, COMPUTE, PART, OPERATORS, KERNEL)


def gated(
    store: TraceStore, candidate: str, *rules: Rule, baseline: str = "noise0", **options: Any
) -> Outcome:
    """Gate a run of the store against a baseline run."""
    return gate([Side(store, baseline)], Side(store, candidate), rules or RULES, **options)


def verdicts(outcome: Outcome) -> dict[str, str]:
    """Return the verdict of each rule that did not pass."""
    return {v.rule.name: v.verdict for v in outcome.verdicts if v.verdict != "passed"}


def test_chance_passes(few: TraceStore) -> None:
    """A candidate that differs from the baseline only by its seed passes."""
    outcome = gated(few, "noise1", COMPUTE, PART)
    assert (outcome.verdict, verdicts(outcome)) == ("passed", {})


def test_a_slower_loader_fails(few: TraceStore) -> None:
    """With a slower data loader, the step time fails by more than its noise, and compute passes."""
    outcome = gated(few, "loading", STEP, COMPUTE)
    assert (outcome.verdict, verdicts(outcome)) == ("failed", {"step": "failed"})
    (step,) = outcome.verdicts[0].rows
    assert step.difference == pytest.approx(2_000_000, rel=0.05)
    assert step.noise is not None
    assert step.noise < 200_000


def test_no_pair_of_ten_is_an_alarm(many: TraceStore) -> None:
    """The default rules pass all ten pairs of runs that differ only by their seed."""
    for baseline, candidate in combinations(NOISE, 2):
        outcome = gate([Side(many, baseline)], Side(many, candidate))
        assert outcome.verdict == "passed"


@pytest.mark.parametrize(
    ("candidate", "verdict", "found"),
    [
        ("noise1", "passed", {}),
        ("fewer_steps", "passed", {}),
        ("slower", "failed", {"step": "failed", "compute": "failed", "part": "failed"}),
        ("collapsed", "failed", {"step": "failed", "compute": "failed", "part": "failed"}),
    ],
)
def test_planted_changes(
    many: TraceStore, candidate: str, verdict: str, found: dict[str, str]
) -> None:
    """Kernels that are 3 % slower or 90 % faster fail; noise and fewer steps pass."""
    outcome = gated(many, candidate)
    assert (outcome.verdict, verdicts(outcome)) == (verdict, found)


def test_a_renamed_kernel_has_no_row(many: TraceStore) -> None:
    """A rule for a renamed kernel is inconclusive, and the message suggests the new name."""
    rule = Rule(
        "gpu_kernels_by_name",
        "mean_ns",
        where={
            "rank": 0,
            "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        },
        max_increase_pct=50,
    )
    (verdict,) = gated(many, "old_names", rule).verdicts
    assert verdict.verdict == "inconclusive"
    assert "no such row" in verdict.message
    assert "Did you mean 'ncclKernel_AllReduce" in verdict.message


def test_a_missing_operator(many: TraceStore) -> None:
    """If operators are missing, the gate is inconclusive, or fails if the difference is allowed."""
    outcome = gated(many, "shallower", STEP, OPERATORS)
    assert (outcome.verdict, outcome.level) == ("inconclusive", "limited")
    assert verdicts(outcome) == {"step": "inconclusive", "operators": "inconclusive"}
    same = ["same operators and shapes"]
    assert gated(many, "shallower", STEP, OPERATORS, allow=same).verdict == "failed"
    gone = Rule("ops_by_name", "op_count", where={"name": "aten::gone"}, max_decrease_pct=5)
    assert gated(many, "noise1", gone).verdict == "inconclusive"


@pytest.mark.slow(reason="large")
@pytest.mark.parametrize(
    ("required", "of_both", "of_candidate"),
    [
        (None, "inconclusive", "inconclusive"),
        (True, "failed", "failed"),
        (False, "skipped", "inconclusive"),
    ],
)
def test_a_candidate_without_memory_events(
    many: TraceStore, required: bool | None, of_both: str, of_candidate: str
) -> None:
    """The verdict on a missing value depends on ``required`` and on the baseline."""
    rule = Rule("kpis", "peak_memory_bytes", max_increase_pct=5, noise="none", required=required)
    (neither,) = gated(many, "noise1", rule).verdicts
    assert (neither.verdict, neither.first.reason) == (of_both, "neither run has a value")
    (lost,) = gated(many, "noise1", rule, baseline="remembers").verdicts
    assert (lost.verdict, lost.first.reason) == (of_candidate, "the candidate has no value")


def test_one_rank_more(many: TraceStore) -> None:
    """A run with one more rank fails unless that is allowed; the new rank has no baseline."""
    refused = gated(many, "more_ranks", COMPUTE)
    assert (refused.verdict, refused.comparability) == ("failed", "failed")
    assert "world size: 2 ▸ 3" in refused.reasons
    each = Rule("step_accounting", "compute_ns", name="each", max_increase_pct=20)
    told = gated(many, "more_ranks", COMPUTE, each, allow_not_comparable=True)
    assert told.verdict == "passed"
    assert (
        told.verdicts[1].message
        == "20 of 30 values; 10 not judged, because the baseline does not have them"
    )


@pytest.mark.slow(reason="large")
def test_baseline_runs_are_noise(many: TraceStore) -> None:
    """With four baseline runs, the baseline is their mean, and the noise is their spread."""
    sides = [Side(many, run) for run in tuple(NOISE)[:4]]
    rule = Rule("kpis", "step_ns", max_increase_pct=1, max_decrease_pct=1)
    assert gate(sides, Side(many, "noise4"), [rule]).verdict == "passed"
    outcome = gate(sides, Side(many, "slower"), [rule])
    (row,) = outcome.verdicts[0].rows
    assert outcome.verdict == "failed"
    steps = [many.run("kpis", runs=[side.run]).records()[0]["step_ns"] for side in sides]
    assert row.baseline == pytest.approx(sum(steps) / 4)
    assert row.noise is not None
    assert row.difference is not None
    assert 0 < row.noise < row.difference
