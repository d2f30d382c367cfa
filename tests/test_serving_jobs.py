"""Tests of the serving analyses on simulated engines, with results exact to the nanosecond."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.serving_jobs import (
    ATTENTION,
    COMBINE,
    DISPATCH,
    GEMM,
    Iteration,
    Kernel,
    attention_work,
    continuous_batching,
    decode,
    pairs_of,
    ranks_of,
    slowed,
    trace,
    truth_of,
)


def answers(folder: Path, iterations: list[Iteration], *names: str) -> list[list[dict[str, Any]]]:
    """Ingest a job and return the rows of each analysis."""
    file = folder / "rank0.json"
    file.write_text(json.dumps(trace(iterations)), encoding="utf-8")
    with hta_sql.ingest(file, folder / "job.store") as store:
        return [store.run(name).records() for name in names]


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 10), (2, 100), pytest.param(3, 1_000, marks=pytest.mark.slow(reason="fuzz"))],
)
def test_figures_are_those_that_are_planted(tmp_path: Path, seed: int, count: int) -> None:
    """Phases, quantiles, token rates, busy time, gaps and attention pairs match the simulation."""
    job = continuous_batching(seed, count)
    found, by_iteration, kinds = answers(tmp_path, job, "serving", "iterations", "serving_kinds")
    planted = truth_of(job)
    assert {row["phase"] for row in found} == planted.keys()
    for row in found:
        phase = planted[row["phase"]]
        total = sum(phase.times_ns)
        assert row["iteration_count"] == len(phase.times_ns)
        for share, column in ((50, "p50"), (90, "p90"), (99, "p99")):
            # DuckDB interpolates in double precision.
            exact = phase.quantile(Fraction(share, 100))
            assert abs(row[f"iteration_{column}_ns"] - exact) <= 1
        assert (row["device_ns"], row["busy_ns"]) == (phase.device_ns, phase.busy_ns)
        assert (row["gap_ns"] or 0) == sum(phase.gaps_ns)
        assert row["unrecorded_ns"] == 0
        assert row["input_tokens_per_s"] == pytest.approx(1e9 * phase.tokens / total, rel=1e-12)
        assert row["min_output_tokens_per_s"] == pytest.approx(
            1e9 * phase.outputs / total, rel=1e-12
        )
        at_most = 1e9 * (phase.outputs + phase.prompts) / total
        assert row["max_output_tokens_per_s"] == pytest.approx(at_most, rel=1e-12)
        assert row["mean_request_count"] == pytest.approx(phase.requests / len(phase.times_ns))
        assert row["mean_context_tokens"] == pytest.approx(phase.context / phase.requests)
        assert row["graph_pct"] == pytest.approx(100 * phase.graphs / len(phase.times_ns))
    assert {(row["phase"], row["category"]): row["total_ns"] for row in kinds} == {
        (name, category): ns
        for name, phase in planted.items()
        for category, ns in phase.kinds_ns.items()
    }
    assert [row["attention_pair_count"] for row in by_iteration] == [pairs_of(one) for one in job]
    assert [row["busy_ns"] for row in by_iteration] == [one.busy_ns for one in job]
    assert [row["gap_before_ns"] for row in by_iteration[1:]] == [
        one.schedule_ns for one in job[1:]
    ]
    assert [row["execution"] for row in by_iteration] == [
        "graph" if one.is_graph else "eager" for one in job
    ]


def test_attention_at_the_roofline_is_what_tokens_and_contexts_need(tmp_path: Path) -> None:
    """Roofline times of attention match the tokens and context lengths in every phase.

    If the attention window is unknown, only an upper bound is given.
    """
    job = [replace(one, is_graph=False) for one in continuous_batching(4, 60)]
    file = tmp_path / "rank0.json"
    file.write_text(json.dumps(trace(job, has_shapes=True)), encoding="utf-8")
    peaks: dict[str, Any] = {"custom_peak_tflops": 0.1, "custom_peak_tbps": 0.01}
    with hta_sql.ingest(file, tmp_path / "job.store") as store:
        unknown, none = (
            {
                row["phase"]: row
                for row in store.run("serving_roofline", window_tokens=window, **peaks).records()
                if row["category"] == "attention"
            }
            for window in (None, 0)
        )
    for phase, row in none.items():
        parts = [
            (attention_work(one), sum(kernel.name == ATTENTION for kernel in one.kernels))
            for one in job
            if one.phase == phase
        ]
        flops = sum(work[0] * layers for work, layers in parts)
        moved = sum(work[1] * layers for work, layers in parts)
        time_ns = sum(max(work[0] / 100, work[1] / 10) * layers for work, layers in parts)
        assert row["max_flops"] == pytest.approx(flops / len(parts), abs=1)
        assert row["max_moved_bytes"] == pytest.approx(moved / len(parts), abs=1)
        assert row["roofline_ns"] == pytest.approx(time_ns / len(parts), abs=1)
        heads = (row["query_head_count"], row["kv_head_count"], row["kv_type"])
        assert heads == (16, 4, "c10::Float8_e4m3fn")
        assert row["reason"] is None
        assert unknown[phase]["roofline_ns"] is None
        assert unknown[phase]["max_roofline_ns"] == row["roofline_ns"]
        assert "window_tokens" in unknown[phase]["reason"]
    assert none.keys() == {one.phase for one in job}


def test_speculative_decoding_is_a_phase_of_its_own(tmp_path: Path) -> None:
    """With three tokens per request, the output is between one and three tokens per request."""
    job = [replace(decode(), generations=((3, 500),) * 4) for _ in range(5)]
    ((row,),) = answers(tmp_path, job, "serving")
    assert row["phase"] == "speculative"
    assert row["max_output_tokens_per_s"] == pytest.approx(3 * row["min_output_tokens_per_s"])


def test_a_slow_scheduler_is_all_that_changes(tmp_path: Path) -> None:
    """A slower scheduler lengthens the gaps and leaves the busy time unchanged."""
    job = continuous_batching(5, 20)
    rows = []
    for name, iterations in (("fast", job), ("slow", slowed(job, 400_000))):
        (tmp_path / name).mkdir()
        (found,) = answers(tmp_path / name, iterations, "serving")
        rows.append({row["phase"]: row for row in found})
    fast, slow = rows
    for phase, row in slow.items():
        assert row["busy_ns"] == fast[phase]["busy_ns"]
        counted = row["iteration_count"] - (job[0].phase == phase)
        assert (row["gap_ns"] or 0) == 400_000 * counted
        assert row["input_tokens_per_s"] < fast[phase]["input_tokens_per_s"]


def _compared(folder: Path, *jobs: list[Iteration]) -> list[dict[str, Any]]:
    """Ingest two jobs as runs a and b, and return their comparison."""
    for run, job in zip("ab", jobs, strict=True):
        file = folder / f"{run}.json"
        file.write_text(json.dumps(trace(job)), encoding="utf-8")
        hta_sql.ingest_shard({0: str(file)}, folder / "s", run=run, jobs=1, shard=(1, 1))
    hta_sql.publish(folder / "s").close()
    with hta_sql.open(folder / "s") as store:
        return store.run("serving_comparison").records()


def test_a_slower_kernel_is_found_at_equal_load(tmp_path: Path) -> None:
    """With different requests, only the kernel that takes 10 % longer is reported as slower."""
    slower = [
        replace(
            one,
            kernels=tuple(
                replace(kernel, dur_ns=kernel.dur_ns * (11 if kernel.name == GEMM else 10) // 10)
                for kernel in one.kernels
            ),
        )
        for one in continuous_batching(2, 300)
    ]
    rows = _compared(tmp_path, continuous_batching(1, 300), slower)
    kernels = {
        row["subject"]: row for row in rows if (row["phase"], row["level"]) == ("decode", "kernel")
    }
    assert kernels.pop(GEMM)["verdict"] == "slower"
    assert not any(row["is_change"] for row in kernels.values())
    for row in rows:
        if row["level"] == "part" and row["control_ns"] is not None:
            assert row["phase"] in {"decode", "mixed"}


def test_each_load_has_its_own_token_rate(tmp_path: Path) -> None:
    """The rate of a load is the number of its requests divided by its mean duration."""
    job = [replace(decode(), generations=((1, 500),) * (4, 16)[n % 2]) for n in range(8)]
    rows = _compared(tmp_path, job, slowed(job, 80_000))
    loads = {row["request_range"]: row for row in rows if row["level"] == "load"}
    assert loads.keys() == {"4-7", "16-31"}
    for (low, row), run in product(loads.items(), ("control", "test")):
        expected = 1e9 * int(low.split("-")[0]) / row[f"{run}_ns"]
        assert row[f"{run}_input_tokens_per_s"] == pytest.approx(expected, rel=1e-3)
        assert row[f"{run}_min_output_tokens_per_s"] == pytest.approx(expected, rel=1e-3)


def test_parts_of_an_iteration_sum_to_it_on_both_sides(tmp_path: Path) -> None:
    """Parts of an iteration, and their differences, add up to the iteration, up to rounding."""
    rows = _compared(
        tmp_path, continuous_batching(1, 200), slowed(continuous_batching(1, 200), 80_000)
    )
    for whole in (row for row in rows if row["level"] == "phase" and row["control_ns"]):
        parts = [row for row in rows if (row["phase"], row["level"]) == (whole["phase"], "part")]
        for column in ("control_ns", "test_ns", "diff_ns"):
            assert abs(sum(row[column] for row in parts) - whole[column]) <= len(parts)
        verdicts = {row["subject"]: row["verdict"] for row in parts}
        assert verdicts["busy"] == "unchanged"
    decode_gap = next(
        row for row in rows if (row["phase"], row["subject"]) == ("decode", "between iterations")
    )
    assert decode_gap["verdict"] == "longer"


def test_an_imbalanced_expert_makes_the_other_ranks_wait(tmp_path: Path) -> None:
    """Ranks with less expert work wait in the combine for the rank with the most work."""
    extra, count = 7_000, 6

    def job(wait: int) -> list[Iteration]:
        exchange = (
            Kernel(DISPATCH, 3_000),
            Kernel(GEMM, 50_000 - wait),
            Kernel(COMBINE, 2_000 + wait),
        )
        return [decode(kernels=exchange, is_graph=True)] * count

    parts = [job(extra), job(0), job(extra // 2)]
    paths = {}
    for rank, document in ranks_of(parts):
        file = tmp_path / f"rank{rank}.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        paths[rank] = str(file)
    with hta_sql.ingest(paths, tmp_path / "job.store") as store:
        rows = {
            (row["rank"], row["comm_role"]): row for row in store.run("expert_parallel").records()
        }
    for rank, wait in ((0, extra), (1, 0), (2, extra // 2)):
        combine, dispatch = rows[rank, "combine"], rows[rank, "dispatch"]
        assert (combine["total_ns"], dispatch["total_ns"]) == (
            count * (2_000 + wait),
            count * 3_000,
        )
        assert (combine["wait_ns"], dispatch["wait_ns"]) == (count * wait, 0)
        assert combine["exposed_ns"] == combine["total_ns"]
