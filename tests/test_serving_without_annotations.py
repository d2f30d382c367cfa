"""Tests that iterations of engines without annotations are found, or unknown, and never wrong.

A job is a list of launches on one host thread, of which the iteration is known: copies of inputs to
the device, graph replays with or without separate kernels between them, sampling, and copies of the
sampled tokens to the host. The capture starts and ends anywhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import hta_sql

Event = dict[str, Any]

SEEDS = range(60)
GRAPHS, OUTPUTS = (1, 2, 20, 80), (1, 2)
CALL_US = 2.0
INPUT, OUTPUT = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)"


@dataclass(frozen=True)
class Launch:
    """A call that launches operations, and the iteration that it belongs to."""

    iteration: int
    names: tuple[str, ...]

    @property
    def call(self) -> str:
        """Return the name of the call."""
        if self.names[0].startswith("Memcpy"):
            return "cudaMemcpyAsync"
        return "cudaLaunchKernel" if len(self.names) == 1 else "cudaGraphLaunch"


@dataclass(frozen=True)
class Kind:
    """How an engine runs an iteration.

    Attributes:
        graphs: Graph replays of an iteration; 0: it launches its kernels one by one.
        has_inputs: Whether inputs are copied to the device.
        outputs: Copies to the host at the end, with a kernel between them.
        has_batches: Whether graphs of several batch sizes are replayed.
        prefill: Share of iterations that launch kernels one by one.
        is_synchronous: Whether each layer copies to the host, as some routers of experts do.
    """

    graphs: int
    has_inputs: bool = True
    outputs: int = 1
    has_batches: bool = False
    prefill: float = 0
    is_synchronous: bool = False


def drawn(rng: random.Random) -> Kind:
    """Choose an engine."""
    return Kind(
        graphs=rng.choice([0, 1, 1, 1, 2, 5, 20, 49, 80]),
        has_inputs=rng.random() < 0.8,
        outputs=rng.choice([1, 1, 2]),
        has_batches=rng.random() < 0.5,
        prefill=rng.choice([0, 0, 0, 0.2]),
        is_synchronous=rng.random() < 0.15,
    )


def launches(kind: Kind, iterations: int, rng: random.Random) -> list[Launch]:
    """Return what the engine launches, in order."""
    listed: list[Launch] = []
    for number in range(iterations):
        inputs = [INPUT] * rng.choice([1, 2, 3]) if kind.has_inputs else []
        outputs = [(OUTPUT,), *[("log_softmax_kernel",), (OUTPUT,)] * (kind.outputs - 1)]
        names: list[tuple[str, ...]] = [
            *((name,) for name in (*inputs, "embedding_kernel")),
            *layers(kind, rng),
            ("argmax_kernel",),
            *outputs,
        ]
        listed += [Launch(number, of_it) for of_it in names]
    return listed


def layers(kind: Kind, rng: random.Random) -> Iterator[tuple[str, ...]]:
    """Yield what the layers of an iteration launch: several operations are a graph."""
    is_eager = not kind.graphs or rng.random() < kind.prefill
    kernels = rng.choice([3, 4, 6]) if kind.has_batches else 4
    for layer in range(6 if is_eager else kind.graphs):
        yield ("gemm_kernel",) * (1 if is_eager else kernels + (layer == 0))
        if kind.graphs > 1 or is_eager:
            yield ("flash_fwd_kernel",)
            if kind.is_synchronous:
                yield (OUTPUT,)


def trace(listed: list[Launch], rng: random.Random) -> Event:
    """Return the trace; iterations take between 0.5 and 2 times as long as each other."""
    events: list[Event] = []
    at, device = 100.0, 100.0
    for correlation, one in enumerate(listed, 1):
        host = {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1, "name": one.call}
        events.append({**host, "ts": at, "dur": CALL_US, "args": {"correlation": correlation}})
        device = max(device, at + 3)
        for name in one.names:
            category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            took = rng.uniform(1, 4)
            args = {"correlation": correlation, "device": 0, "stream": 7}
            op = {"ph": "X", "cat": category, "pid": 0, "tid": 7, "name": name, "args": args}
            events.append({**op, "ts": round(device, 3), "dur": round(took, 3)})
            device += took + 0.5
        at += CALL_US + 1
        if "DtoH" in one.names[0]:
            at = max(at, device + 1)
    return {"schemaVersion": 1, "traceEvents": events}


@dataclass(frozen=True)
class Capture:
    """The launches of a job, and the range of them that was captured."""

    kind: Kind
    whole: list[Launch]
    start: int
    end: int

    @property
    def listed(self) -> list[Launch]:
        """Return the captured launches."""
        return self.whole[self.start : self.end]


def expected(capture: Capture) -> list[int]:
    """Return the number of captured operations of each iteration that is in the capture.

    An iteration of which only some copies of inputs are missing is in it.
    """
    whole, start, end = capture.whole, capture.start, capture.end
    inside = []
    for number in sorted({one.iteration for one in whole}):
        places = [at for at, one in enumerate(whole) if one.iteration == number]
        captured = [at for at in places if start <= at < end]
        cut = {whole[at].names for at in places if at < start} | {
            whole[at].names for at in captured[:1]
        }
        if captured and captured[-1] == places[-1] and (captured == places or cut == {(INPUT,)}):
            inside.append(sum(len(whole[at].names) for at in captured))
    return inside


def captures() -> dict[str, tuple[Capture, random.Random]]:
    """Return jobs at random, and jobs of known kinds of which the first iteration is cut."""
    made: dict[str, tuple[Capture, random.Random]] = {}
    for seed in SEEDS:
        rng = random.Random(seed)
        kind = drawn(rng)
        whole = launches(kind, rng.randint(1, 12), rng)
        start = rng.choice([0, rng.randrange(len(whole))])
        end = rng.choice([len(whole), rng.randint(start + 1, len(whole))])
        made[f"drawn-{seed}"] = Capture(kind, whole, start, end), rng
    for graphs, outputs in product(GRAPHS, OUTPUTS):
        rng = random.Random(graphs)
        kind = Kind(graphs, outputs=outputs, has_batches=True)
        whole = launches(kind, 5, rng)
        start = sum(one.iteration == 0 for one in whole) // 2
        made[f"period-{graphs}-{outputs}"] = Capture(kind, whole, start, len(whole)), rng
    return made


Found = dict[str, tuple[Capture, list[dict[str, Any]]]]
"""Run ─▶ its capture, and the iterations that are found in it."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Ingest each capture as a run of one store, and find the iterations of all runs."""
    top = tmp_path_factory.mktemp("captures")
    made = captures()
    for run, (capture, rng) in made.items():
        (top / run).mkdir()
        text = json.dumps(trace(capture.listed, rng))
        (top / run / "rank0.json").write_text(text, encoding="utf-8")
        hta_sql.ingest_shard(top / run, top / "job.store", run=run, jobs=1, shard=(1, 1))
    with hta_sql.publish(top / "job.store") as store:
        rows = store.run("iterations").records()
        findings = store.run("findings").records()
    unknown = {row["run"] for row in findings if row["finding"] == "iterations_unknown"}
    of_runs = {run: (capture, [r for r in rows if r["run"] == run])
        for run, (capture, _) in made.items()}  # fmt: skip
    for run, (capture, of_run) in of_runs.items():
        replays = any(one.call == "cudaGraphLaunch" for one in capture.listed)
        assert (run in unknown) == (replays and not of_run)
    return of_runs


@pytest.mark.parametrize("seed", SEEDS)
def test_iterations_are_right_or_unknown(seed: int, found: Found) -> None:
    """Iterations found are those within the capture, operation by operation; else there are none."""
    capture, rows = found[f"drawn-{seed}"]
    if not rows:
        return
    counts = [row["op_count"] for row in rows]
    if sum(one.call == "cudaGraphLaunch" for one in capture.listed) == 1:
        assert len(counts) == 1  # an iteration, or the part of one that was captured
        return
    assert counts == expected(capture), capture.kind


@pytest.mark.parametrize("graphs", GRAPHS)
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_periods_of_replays_are_iterations(graphs: int, outputs: int, found: Found) -> None:
    """Five iterations of mixed batch sizes, the first cut, are four, whatever their replays."""
    capture, rows = found[f"period-{graphs}-{outputs}"]
    assert [row["op_count"] for row in rows] == expected(capture)
    assert len(rows) == 4
    assert {row["detected_by"] for row in rows} == {"graph"}
    assert {row["graph_count"] for row in rows} == {graphs}


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("vllm/v1/worker/gpu_worker.py(431): execute_model", "vLLM"),
        ("sglang/srt/managers/tp_worker.py(170): forward_batch_generation", "SGLang"),
        ("nanovllm/engine/llm_engine.py(144): step", "nano-vllm"),
        ("execute_model", None),
    ],
)
def test_calls_of_an_engine_are_iterations(
    name: str, framework: str | None, tmp_path: Path
) -> None:
    """Outermost calls are iterations, one without launches is none, and replays do not count."""
    rng = random.Random(1)
    made = trace(launches(Kind(20), 3, rng), rng)
    calls = [event for event in made["traceEvents"] if event["cat"] == "cuda_runtime"]
    size = len(calls) // 3
    python = name.endswith((": step", ": execute_model", "generation"))
    about = {
        "ph": "X",
        "cat": "python_function" if python else "user_annotation",
        "pid": 1,
        "tid": 1,
    }
    for first in (calls[0], calls[size + 5], calls[2 * size + 5]):
        start = first["ts"] - 1
        made["traceEvents"] += [
            {**about, "name": name, "ts": start, "dur": 60.0, "args": {}},
            {**about, "name": name, "ts": start + 0.1, "dur": 59.0, "args": {}},
        ]
    made["traceEvents"].append({**about, "name": name, "ts": 1e6, "dur": 60.0, "args": {}})
    (tmp_path / "rank0.json").write_text(json.dumps(made), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "job.store") as store:
        rows = store.run("iterations").records()
    assert [(row["detected_by"], row["framework"]) for row in rows] == [("frame", framework)] * 3
