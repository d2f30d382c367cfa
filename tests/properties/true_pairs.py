"""Pairs of simulated jobs with known differences: what changed, in which steps, on which rank."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import hta_sql
from hta_sql import synthetic
from hta_sql.authoring.golden_messages import render
from hta_sql.synthetic import JobSpec
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SEED = int(os.environ.get("HTA_SQL_TRUTH_SEED", "1"))
"""Seed of the random durations in all pairs."""

BASE = JobSpec(ranks=2, steps=21, layers=2, ops_per_layer=4)
"""The base job. Its steps 10 to 29 count, because analyses exclude the last one."""

STEPS = range(BASE.first_step, BASE.first_step + BASE.steps)


@dataclass(frozen=True)
class Pair:
    """A control, a test, and the truth about them.

    Attributes:
        verdicts: Correct verdicts on the step.
        test: Differences of the test job from the base job.
        control: Differences of the control job from the base job.
        slow_steps: Message about the slow steps of the test; None if there are none.
        rows: Pairs of part and name that must be among the changes.
        lead: Strings in the headline: the cause, and its rank.
    """

    verdicts: tuple[str, ...]
    test: dict[str, Any] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    slow_steps: str | None = None
    rows: tuple[tuple[str, str], ...] = ()
    lead: tuple[str, ...] = ()


def steps_message(code: str, count: int, **values: object) -> str:
    """Render the message about slow steps, with ## in place of the increase."""
    increase = "##" if values.get("is_multiple") else "## %"
    return render(
        f"slow_steps.{code}",
        {"slow_count": count, "step_count": 20, "increase": increase, **values},
    )


SAME = ("unchanged", "within noise")
SLOWER = ("slower",)
SOMETIMES = ("slower in some steps",)

PAIRS = {
    "throttling": Pair(
        SLOWER,
        {"slow_steps": {step: 1.5 for step in STEPS if step > 20}},
        slow_steps=steps_message("from_step", 9, first_step=21),
        rows=(("compute", "aten::mm"),),
        lead=("Most of it is computation, +", "aten::mm +"),
    ),
    "intermittent": Pair(
        SOMETIMES,
        {"stragglers": {1: 9_000_000}, "late_steps": (13, 17, 22)},
        slow_steps=steps_message("listed", 3, is_multiple=True, steps="13, 17, 22"),
        lead=("Cause on rank 1: the device idles", "(data loading)"),
    ),
    "checkpoint": Pair(
        SOMETIMES,
        {"step_delays": {15: 60_000_000}},
        slow_steps=steps_message("one_step", 1, is_multiple=True, first_step=15),
        lead=("Cause: the device idles", "its host is in ## checkpoint ##"),
    ),
    "accumulation": Pair(
        SOMETIMES,
        {"step_delays": {step: 2_400_000 if step % 4 == 1 else 400_000 for step in STEPS}},
        {"step_delays": dict.fromkeys(STEPS, 400_000)},
        slow_steps=steps_message("periodic", 5, period=4),
    ),
    # Three of four ranks wait: their waiting exceeds the idle time of the late rank.
    "slow-host": Pair(
        SLOWER,
        {"ranks": 4, "stragglers": {2: 1_500_000}},
        {"ranks": 4},
        rows=(("wait", "allreduce"),),
        lead=(
            "Cause on rank 2: the device idles 1.",
            "(data loading); the other ranks wait for it",
        ),
    ),
    "kernel-slower": Pair(
        SLOWER,
        {"kernel_factors": {"flash": 1.3}},
        rows=(("compute", "aten::_flash_attention_backward"),),
        lead=("Cause: aten::_flash_attention_backward (compute) takes",),
    ),
    "operator-added": Pair(
        SLOWER,
        {"ops_per_layer": 5},
        rows=(("compute", "aten::sum"), ("compute", "aten::add")),
        lead=("Operators added: aten::sum (compute), +", "aten::add (compute), +"),
    ),
    "loading": Pair(
        SLOWER,
        {"stragglers": {0: 700_000, 1: 700_000}},
        rows=(("idle", "not launched yet"),),
        lead=("Cause: the device idles ", "(data loading)"),
    ),
    "fewer-steps": Pair(SAME, {"steps": 9}),
    "same": Pair(SAME),
    "same-again": Pair(SAME),
    "faster": Pair(
        ("faster",),
        control={"slow_kernels": {0: 1.1, 1: 1.1}},
        lead=("Most of it is computation, -", "aten::mm -"),
    ),
}


def pairs_store(factory: pytest.TempPathFactory) -> Path:
    """Simulate both jobs of each pair, and ingest them as runs NAME-control and NAME-test."""

    def make(store: Path) -> None:
        seed = 1000 * SEED
        for name, pair in PAIRS.items():
            for side, options in (("control", pair.control), ("test", pair.test)):
                seed += 1
                run = f"{name}-{side}"
                traces = store.parent / run
                synthetic.write_job(traces, replace(BASE, seed=seed, **options))
                hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
        hta_sql.publish(store).close()

    return made_once(factory, f"true-pairs-{SEED}", make)
