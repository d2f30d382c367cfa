"""Tests of iteration names as serving engines write them, and of the values parsed from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql

NAMES: dict[str, tuple[str, int | None, int | None, int | None]] = {
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
    "_generation_37(sq37sk34489sqsq37sqsk34489)": ("mixed", 46, 8192, 3937495 + 34489),
    "execute_context_2(14721)_generation_0(0)": ("prefill", 2, 14721, None),
    "execute_context_1(900_810000)_generation_0(0)": ("prefill", 1, 900, None),
    "execute_context_0(0)_generation_64(64)": ("decode", 64, 64, None),
    "execute_context_0(0)_generation_8(24)": ("speculative", 8, 24, None),
    "execute_new_1_cached_31": ("mixed", 32, None, None),
    "step[DECODE bs=32]": ("decode", 32, 32, None),
    "step[EXTEND bs=15 toks=15360]": ("prefill", 15, 15360, None),
    "step[IDLE bs=0]": ("idle", 0, 0, 0),
    "step[DECODE bs=4 g_sqsq=4 g_sqsk=4100 g_sk=4100]": ("decode", 4, 4, 4100),
    "step[EXTEND bs=1 toks=4 c_sqsq=16 c_sqsk=40 c_sk=10]": ("prefill", 1, 4, 34),
    "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]": (
        *("mixed", 2, 6),
        30 + 12,
    ),
    "step[TARGET_VERIFY bs=8]": ("speculative", 8, None, None),
    "decode[bs=117/128 tok=117 d=117]": ("decode", 117, 117, None),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": ("prefill", 2, 14721, None),
    "[Executor] _forward_step 7: 1 ctx reqs, 900 ctx tokens, 31 gen reqs": (
        *("mixed", 32, None),
        None,
    ),
}
"""Name ─▶ phase, request count, new tokens and attention pairs."""

OTHERS = (
    *("execute_model", "step[1]", "ProfilerStep#3", "decode", "execute_new_1_cached_"),
    f"execute_new_{10**30}_cached_1",
)


def trace(names: list[str]) -> dict[str, Any]:
    """Return a trace of consecutive annotations, each of which launches a kernel."""
    events: list[dict[str, Any]] = []
    for at, name in enumerate(names):
        host = {"ph": "X", "pid": 1, "tid": 1, "ts": 100 * at}
        events.append({**host, "cat": "user_annotation", "name": name, "dur": 50, "args": {}})
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 2}
        events.append({**host, **call, "args": {"correlation": at + 1}})
        args = {"correlation": at + 1, "device": 0, "stream": 7}
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "args": args}
        events.append({**kernel, "ts": 100 * at + 10, "dur": 30})
    return {"schemaVersion": 1, "traceEvents": events}


@pytest.fixture(scope="module")
def iterations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Return the rows of the iterations analysis by name."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "rank0.json").write_text(json.dumps(trace([*NAMES, *OTHERS])), encoding="utf-8")
    with hta_sql.ingest(folder / "rank0.json", folder / "job.store") as store:
        yield {row["name"]: row for row in store.run("iterations").records()}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_what_is_processed(name: str, iterations: dict[str, dict[str, Any]]) -> None:
    """Phase, requests, tokens and attention pairs are parsed, and missing values are NULL."""
    row = iterations[name]
    columns = ("phase", "request_count", "new_tokens", "attention_pair_count")
    assert tuple(row[column] for column in columns) == NAMES[name]
    assert (row["detected_by"], row["busy_ns"], row["execution"]) == ("annotation", 30_000, "eager")


def test_other_names_are_no_iterations(iterations: dict[str, dict[str, Any]]) -> None:
    """Other names are not iterations; an iteration with an impossibly large number has no size."""
    assert set(iterations) == {*NAMES, OTHERS[-1]}
    assert iterations[OTHERS[-1]]["request_count"] is None


def test_gaps_are_between_operations(iterations: dict[str, dict[str, Any]]) -> None:
    """A gap is the time from the end of an iteration on the device to the start of the next."""
    gaps = [row["gap_before_ns"] for row in iterations.values()]
    assert gaps[:3] == [None, 70_000, 70_000]


def test_an_engine_writes_no_names_into_a_trace_of_training(tmp_path: Path) -> None:
    """Without iteration names, as in training, the serving analyses have no rows."""
    (tmp_path / "rank0.json").write_text(json.dumps(trace(["forward"])), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "job.store") as store:
        assert [len(store.run(name)) for name in ("iterations", "serving", "serving_kinds")] == [
            0
        ] * 3


def test_an_engine_is_named_by_its_own_annotation(tmp_path: Path) -> None:
    """SGLang writes names in vLLM's format around its own; it is SGLang all the same."""
    own = "step[DECODE bs=2]"
    made = trace([own])
    around = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": -1, "dur": 60}
    made["traceEvents"].append({**around, "name": "execute_context_0(0)_generation_2(2)"})
    (tmp_path / "rank0.json").write_text(json.dumps(made), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "job.store") as store:
        (row,) = store.run("iterations").records()
    assert (row["framework"], row["phase"], row["request_count"]) == ("SGLang", "decode", 2)


def test_the_gap_is_to_the_end_of_all_earlier_iterations(tmp_path: Path) -> None:
    """The first iteration ends on the device after the second one; the third starts later still."""
    made = trace(["step[DECODE bs=1]", "step[DECODE bs=2]", "step[DECODE bs=3]"])
    kernels = [event for event in made["traceEvents"] if event["cat"] == "kernel"]
    kernels[0]["dur"] = 195  # from 10 to 205 us; the second from 110 to 140, the third from 210
    (tmp_path / "rank0.json").write_text(json.dumps(made), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "job.store") as store:
        rows = store.run("iterations").records()
    assert [row["gap_before_ns"] for row in rows] == [None, -95_000, 5_000]
