"""Tests that each serving rule of advice finds the planted loss, but not below its threshold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql import TraceStore
from tests.serving_jobs import (
    ALL_REDUCE,
    ATTENTION,
    COMBINE,
    DISPATCH,
    NORM,
    Iteration,
    Kernel,
    attention_work,
    capture,
    decode,
    layers,
    ranks_of,
)

COUNT = 50
BUSY_NS, SCHEDULE_NS = 400_000, 4_000
"""Duration of a decode iteration, and the host time before it, which is 1 % of the total [ns]."""

Job = tuple[list[list[Iteration]], int]
"""Iterations of each rank, and the loss on the last rank [ns]."""


def plain(**options: Any) -> Iteration:
    """Return a decode iteration without any loss."""
    return decode(**{"is_graph": True, "schedule_ns": SCHEDULE_NS, **options})


def lost_of(share: float) -> int:
    """Return the time that, added to each iteration, makes up the given share of the total [ns]."""
    return round((BUSY_NS + SCHEDULE_NS) * share / (1 - share))


def eager_decode(share: float) -> Job:
    """Return decode iterations whose kernels are launched separately and late."""
    idle = lost_of(share) // 11
    return [
        [plain(kernels=layers(4, 10_000, idle_ns=idle), is_graph=False)] * COUNT
    ], 11 * idle * COUNT


def scheduling_gap(share: float) -> Job:
    """Return decode iterations with a slow scheduler; the first iteration has no gap before it."""
    gap = round(BUSY_NS * share / (1 - share))
    return [[plain(schedule_ns=gap)] * COUNT], gap * (COUNT - 1)


def graph_padding(share: float) -> Job:
    """Return decode iterations whose graphs were captured for 100 requests but serve fewer."""
    # ``share`` refers to the total time, but padding is a share of the busy time.
    missing = round(100 * share * (BUSY_NS + SCHEDULE_NS) / BUSY_NS)
    return [[plain(requests=100 - missing, padded=100)] * COUNT], BUSY_NS * missing * COUNT // 100


def mixed_iterations(share: float) -> Job:
    """Return decode iterations, every fifth of which also processes a prompt and takes longer."""
    scale = 10_000 + round(lost_of(share) * 5 / 40)
    mixed = plain(kernels=layers(4, scale), contexts=((512, 512),), is_graph=False)
    return [[mixed if number % 5 == 4 else plain() for number in range(COUNT)]], 40 * (
        scale - 10_000
    ) * 10


def _after(*kernels: Kernel) -> Iteration:
    return replace(plain(), kernels=(*layers(4, 10_000), *kernels))


def serving_all_reduce(share: float) -> Job:
    """Return decode iterations with an NCCL all-reduce after the layers."""
    return [[_after(Kernel(ALL_REDUCE, lost_of(share)))] * COUNT], lost_of(share) * COUNT


def expert_exposed(share: float) -> Job:
    """Return decode iterations that end with a DeepEP dispatch and combine."""
    half = lost_of(share) // 2
    return [[_after(Kernel(DISPATCH, half), Kernel(COMBINE, half))] * COUNT], 2 * half * COUNT


def expert_wait(share: float) -> Job:
    """Return decode iterations of two expert-parallel ranks; dispatches on the second rank wait."""
    lost = lost_of(share)
    ranks = [
        [_after(Kernel(DISPATCH, 1_000 + wait), Kernel(COMBINE, 1_000))] * COUNT
        for wait in (0, lost)
    ]
    return ranks, lost * COUNT


def slow_attention(share: float) -> Job:
    """Return decode iterations on an H100 whose attention takes longer than its roofline time.

    The excess is the given share of the total.
    """
    flops, moved = attention_work(decode())
    least = round(max(flops / 989_400, moved / 3_350))
    others = tuple(replace(kernel, name=NORM) for kernel in layers(4, 10_000))
    kernels = (*others, Kernel(ATTENTION, lost_of(share) + least))
    return [[plain(kernels=kernels, is_graph=False)] * COUNT], lost_of(share) * COUNT


def quantized_products(share: float) -> Job:
    """Return decode iterations with an ExLlama product that could take an eighth of its time."""
    product = round((BUSY_NS + SCHEDULE_NS) * share / (7 / 8 - share))
    job = [_after(Kernel("gemm_half_q_half_gptq_4bit_kernel", product))] * COUNT
    return [job], product * COUNT - product * COUNT // 8


RULES: dict[str, tuple[Callable[[float], Job], float]] = {
    "eager_decode": (eager_decode, 0.05),
    "scheduling_gap": (scheduling_gap, 0.05),
    "graph_padding": (graph_padding, 0.05),
    "mixed_iterations": (mixed_iterations, 0.1),
    "serving_all_reduce": (serving_all_reduce, 0.05),
    "expert_exposed": (expert_exposed, 0.05),
    "expert_wait": (expert_wait, 0.05),
    "slow_attention": (slow_attention, 0.05),
    "quantized_products": (quantized_products, 0.05),
}
"""Rule ─▶ the function that plants its loss, and the threshold of the rule."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest two runs for each rule, with losses of 1.2 and 0.8 times its threshold."""
    folder = tmp_path_factory.mktemp("serving_advice")
    for rule, (plant, threshold) in RULES.items():
        for run, factor in ((rule, 1.2), (f"{rule}-silent", 0.8)):
            paths = {}
            for rank, document in ranks_of(
                plant(factor * threshold)[0], has_shapes=rule == "slow_attention"
            ):
                path = folder / f"{run}-rank{rank}.json"
                path.write_text(json.dumps(document), encoding="utf-8")
                paths[rank] = str(path)
            hta_sql.ingest_shard(paths, folder / "s", run=run, jobs=1, shard=(1, 1))
    hta_sql.publish(folder / "s").close()
    with hta_sql.open(folder / "s") as opened:
        yield opened


@pytest.fixture(scope="module")
def advice(store: TraceStore) -> list[dict[str, Any]]:
    """Return the advice for all runs."""
    return store.run("advice").records()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_speaks_of_what_is_planted(rule: str, advice: list[dict[str, Any]]) -> None:
    """Only the planted rule applies, with the planted loss; no general rule repeats it."""
    plant, threshold = RULES[rule]
    parts, lost = plant(1.2 * threshold)
    found = {
        row["rule"]: row for row in advice if row["run"] == rule and row["rank"] == len(parts) - 1
    }
    assert found.keys() & RULES.keys() == {rule}
    assert not found.keys() & {"launch_bound", "queued_gaps", "exposed_transfer", "largest_loss"}
    row = found[rule]
    assert row["saved_ns"] == lost
    assert row["saved_pct"] == pytest.approx(120 * threshold, rel=0.05)
    assert row["combined_saved_ns"] >= lost
    assert row["remedy"].endswith(".")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_silent_below_its_threshold(rule: str, advice: list[dict[str, Any]]) -> None:
    """At 0.8 times the threshold, no serving rule applies."""
    said = {row["rule"] for row in advice if row["run"] == f"{rule}-silent"}
    assert not said & RULES.keys()


@pytest.mark.parametrize("rule", RULES)
def test_its_evidence_can_be_queried(
    rule: str, store: TraceStore, advice: list[dict[str, Any]]
) -> None:
    """The evidence query of each rule and its suggested next analysis return rows."""
    row = next(row for row in advice if row["run"] == rule and row["rule"] == rule)
    assert len(store.sql(row["evidence_sql"]))
    assert len(store.run(row["next_analysis"], runs=[rule]))


def test_time_beyond_the_fastest_rank_is_not_called_a_wait(advice: list[dict[str, Any]]) -> None:
    """Waits elsewhere last until the last rank arrives; this time has another definition."""
    (message,) = {row["message"] for row in advice if row["rule"] == row["run"] == "expert_wait"}
    assert message.startswith("Expert-parallel exchanges take longer than on the fastest rank for")
    assert "wait" not in message


def test_a_server_without_requests_does_not_schedule_slowly(tmp_path: Path) -> None:
    """Gaps of 60 ms mean that there are no requests; gaps of 40 ms count as slow scheduling."""
    for milliseconds, speaks in ((60, False), (40, True)):
        folder = tmp_path / str(milliseconds)
        folder.mkdir()
        job = [plain(schedule_ns=milliseconds * 1_000_000) for _ in range(5)]
        ((_, document),) = ranks_of([job])
        (folder / "rank0.json").write_text(json.dumps(document), encoding="utf-8")
        with hta_sql.ingest(folder / "rank0.json", folder / "s") as store:
            rules = {row["rule"] for row in store.run("advice").records()}
        assert ("scheduling_gap" in rules) == speaks


@pytest.mark.parametrize("factor", [1.2, 0.8])
def test_captures_say_how_far_a_graph_is_padded(tmp_path: Path, factor: float) -> None:
    """Graph padding is computed from the smallest captured graph that fits the tokens.

    This works for engines that do not record their padding.
    """
    threshold = RULES["graph_padding"][1]
    (job,), lost = graph_padding(factor * threshold)
    job = [replace(one, padded=None) for one in job]
    kernels = job[0].kernels
    small = tuple(replace(kernel, name=f"{kernel.name}_small") for kernel in kernels)
    ((_, document),) = ranks_of([job])
    (tmp_path / "rank0.json").write_text(json.dumps(document), encoding="utf-8")
    captured = capture({200: kernels, 100: kernels, 64: small})
    (tmp_path / "graph_capture_rank_0.json").write_text(json.dumps(captured), encoding="utf-8")
    with hta_sql.ingest(tmp_path, tmp_path / "job.store") as store:
        iterations = store.run("iterations").records()
        found = [row for row in store.run("advice").records() if row["rule"] == "graph_padding"]
    assert {row["padded_tokens"] for row in iterations} == {100}
    assert {row["padded_request_count"] for row in iterations} == {None}
    assert [row["saved_ns"] for row in found] == ([lost] if factor > 1 else [])
