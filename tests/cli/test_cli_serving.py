"""Tests of ``hta-sql serving``, which describes the phases of a serving job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import hta_sql
from tests.serving_jobs import decode, slowed, trace

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_each_phase_is_a_line(cli: Cli, trace_path: Callable[[str], object]) -> None:
    """The output describes each phase, with time per token, throughput, gaps and kernels."""
    lines = cli("serving", trace_path("serving_steps.json")).out.splitlines()
    assert lines[0] == (
        "serving_steps rank 0: decode (SGLang), 2 iterations; 37.500 µs per output token (p99 39.950 µs); "
        "4.0 requests; 106,667 tokens/s processed; 106,667 tokens/s out; device busy 80.0 %; 7.500 µs between "
        "iterations; 100 % of iterations replay graphs. Most of the time: gemm 53 %, attention 27 %."
    )
    assert lines[1].startswith(
        "  Time at the roofline unknown: replayed from a graph whose capture"
    )
    assert lines[2].startswith("serving_steps rank 0: prefill (SGLang), 1 iteration; 50.000 µs")
    assert "0 to 20,000 tokens/s out" in lines[2]
    assert lines[-1].startswith("See: hta-sql ingest ")
    assert lines[-1].endswith("hta-sql run job.store iterations")


def test_time_at_the_roofline_is_a_line(cli: Cli, trace_path: Callable[[str], object]) -> None:
    """For an unknown device, the roofline line explains how to pass its peaks."""
    line = cli("serving", trace_path("serving_roofline.json")).out.splitlines()[1]
    assert line.startswith("  Known work of an iteration: 0.000 TFLOP and 0.002 GB.")
    command = (
        "hta-sql run job.store serving_roofline --custom-peak-tflops TFLOPS --custom-peak-tbps TBPS"
    )
    assert line.endswith(command)


def test_replays_without_their_capture_name_the_option(
    cli: Cli, trace_path: Callable[[str], object]
) -> None:
    """Serving and doctor name --captures, and doctor does not demand steps of an engine."""
    path = trace_path("serving_steps.json")
    assert "hta-sql ingest TRACES -o job.store --captures CAPTURES" in cli("serving", path).out
    out = cli("doctor", path).out
    assert "hta-sql ingest TRACES -o job.store --captures CAPTURES" in out
    assert "prof.step()" not in out


def test_exchanges_of_experts_are_a_line(cli: Cli, trace_path: Callable[[str], object]) -> None:
    """The output states the time of expert exchanges and how much of it is overlapped."""
    out = cli("serving", trace_path("expert_parallel_0.json")).out
    assert "DeepEP expert exchanges take 47.000 µs (combine 28.000 µs, dispatch 15.000 µs" in out
    assert "21.3 % of it overlapped by computation." in out


def test_json_is_the_analysis(cli: Cli, trace_path: Callable[[str], object]) -> None:
    """JSON output has the rows of the analysis."""
    rows = json.loads(cli("serving", trace_path("serving_steps.json"), "--format", "json").out)
    assert [(row["phase"], row["iteration_count"]) for row in rows] == [
        ("decode", 2),
        ("prefill", 1),
    ]


def test_training_is_told_from_serving(cli: Cli, trace_path: Callable[[str], object]) -> None:
    """For a training job, a message says that no serving iteration was found."""
    assert "No iterations of a serving engine" in cli("serving", trace_path("one_step.json")).out


def test_rules_of_the_page_judge_time_per_token_and_tokens_per_second(
    cli: Cli, tmp_path: Path
) -> None:
    """The gate rules in docs/serving.md fail a job whose scheduler is slower in each iteration.

    With only three iterations, the rules are inconclusive.
    """
    page = Path(__file__).parents[2] / "docs" / "serving.md"
    (rules,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "gate.toml").write_text(rules, encoding="utf-8")
    job = [decode(schedule_ns=20_000 + 100 * (number % 3)) for number in range(20)]
    jobs = {"base": job, "same": job, "slow": slowed(job, 56_000), "short": slowed(job, 56_000)[:3]}
    for run, iterations in jobs.items():
        file = tmp_path / f"{run}.json"
        file.write_text(json.dumps(trace(iterations)), encoding="utf-8")
        hta_sql.ingest_shard({0: str(file)}, tmp_path / "s", run=run, jobs=1, shard=(1, 1))
    hta_sql.publish(tmp_path / "s").close()
    verdicts = {}
    for run in jobs.keys() - {"base"}:
        sides = ("--baseline", f"{tmp_path}/s:base", "--candidate", f"{tmp_path}/s:{run}")
        done = cli("gate", *sides, "--rules", tmp_path / "gate.toml", "--format", "json")
        verdicts[run] = [rule["verdict"] for rule in json.loads(done.out)["rules"]]
    assert verdicts == {
        "same": ["passed", "passed"],
        "slow": ["failed", "failed"],
        "short": ["inconclusive", "inconclusive"],
    }
