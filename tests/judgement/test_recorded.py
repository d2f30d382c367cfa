"""Tests of the score on recorded jobs; the recording itself needs torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.judgement.recorded import FAULTS, Truth, judged, planned, truth_of

LATE, INNOCENT = Truth(share=0.4, often=1.0), Truth(share=-0.4, often=0.0)


def test_every_kind_of_fault_is_drawn_and_a_seed_draws_the_same_jobs() -> None:
    """The jobs have all kinds of faults in turn, and are equal for equal seeds."""
    plan = planned(120, 7)
    assert {job.fault for job in plan} == set(FAULTS)
    assert plan == planned(120, 7) != planned(120, 8)


@pytest.mark.parametrize(
    ("verdicts", "is_advised", "wrong"),
    [
        ({0: "straggler", 1: "none"}, True, []),
        ({0: "straggler", 1: "none"}, False, ["disagree"]),
        ({0: "suspected", 1: "none"}, False, ["missed"]),
        ({0: "none", 1: "suspected"}, True, ["disagree", "missed"]),
        ({0: "straggler", 1: "intermittent"}, True, ["innocent"]),
        ({}, False, ["missed"]),
    ],
)
def test_only_a_certain_verdict_counts(
    verdicts: dict[int, str], wrong: list[str], *, is_advised: bool
) -> None:
    """A late rank must be named with certainty and by advice, and an innocent one must not."""
    truth = {0: LATE, 1: INNOCENT}
    assert list(judged(truth, verdicts, is_advised=is_advised)) == wrong


def test_the_truth_is_the_difference_of_the_busy_times(tmp_path: Path) -> None:
    """A rank that is busy for 4 of 10 ms more in each step is late by 40 %."""
    for rank, busy in enumerate((8, 4)):
        told = {"busy_ns": [busy * 1_000_000] * 3, "step_ns": [10_000_000] * 3}
        (tmp_path / f"truth{rank}.txt").write_text(json.dumps(told), encoding="utf-8")
    assert truth_of(tmp_path) == {0: Truth(0.4, 1.0), 1: Truth(-0.4, 0.0)}
