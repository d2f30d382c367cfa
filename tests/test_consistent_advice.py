"""Tests that recommendations do not contradict each other, the recording, or other answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.synthetic import JobSpec, write_job

Event = dict[str, Any]


def host(name: str, ts: float, dur: float, category: str = "cpu_op") -> Event:
    """Return an event on the host."""
    event = {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1}
    return {**event, "args": {}}


def launched(at: float, number: int, dur: float = 2) -> list[Event]:
    """Return a launch and its kernel."""
    key = {"correlation": number}
    launch = {**host("cudaLaunchKernel", at, 3, "cuda_runtime"), "args": key}
    kernel = {**host("gemm", at + 4, dur, "kernel"), "pid": 0, "tid": 7}
    return [launch, {**kernel, "args": {"device": 0, "stream": 7, **key}}]


def launch_bound(gap: float = 50) -> list[Event]:
    """Return an operator that launches 20 short kernels with pauses."""
    events = [host("aten::slow", 0, 20 * gap + 10)]
    for number in range(20):
        events += launched(5 + gap * number, number + 1)
    return events


def ingested(tmp_path: Path, events: list[Event]) -> hta_sql.TraceStore:
    """Ingest events as the trace of rank 0."""
    path = tmp_path / "0.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return hta_sql.ingest(path, tmp_path / "store")


def rule(store: hta_sql.TraceStore, name: str) -> dict[str, Any]:
    """Return the recommendation of a rule."""
    return next(row for row in store.run("advice").records() if row["rule"] == name)


def test_recorded_stacks_lower_the_confidence_in_host_time(tmp_path: Path) -> None:
    """Stacks slow the host down, so the saving is too high: the sentence says so."""
    stacks = [host("train.py(1): step", 0, 1100, "python_function")]
    without = rule(ingested(tmp_path / "a", launch_bound()), "launch_bound")
    recorded = rule(ingested(tmp_path / "b", [*stacks, *launch_bound()]), "launch_bound")
    assert without["confidence"] == "high"
    assert "with_stack" not in without["message"]
    assert recorded["confidence"] == "medium"
    assert "without with_stack" in recorded["message"]


def test_the_largest_loss_promises_no_saving(tmp_path: Path) -> None:
    """If no rule saves 3 %, what of the largest loss can be saved is unknown."""
    events = [*launched(0, 1, 1000), *launched(1100, 2, 1000)]
    row = rule(ingested(tmp_path, events), "largest_loss")
    assert row["saved_ns"] is None
    assert row["affected_ns"] > 0


def test_nanoseconds_are_no_saving(tmp_path: Path) -> None:
    """A trace of a few microseconds has no recommendation that saves less than one."""
    events = [*launched(0, 1, 0.1), *launched(0.9, 2, 0.1)]
    for row in ingested(tmp_path, events).run("advice").records():
        assert row["saved_ns"] is None or row["saved_ns"] >= 1000


@pytest.mark.parametrize(("gap", "code"), [(50, "host_operator"), (10_000, "busy_operator")])
def test_a_long_gap_is_no_slow_launch(tmp_path: Path, gap: float, code: str) -> None:
    """Launches do not take longer than the kernels if the host works 10 ms between two of them."""
    found = ingested(tmp_path, launch_bound(gap)).run("idle_causes").records()
    codes = {row["message_code"] for row in found if row["name"] == "aten::slow"}
    assert codes == {f"idle_causes.{code}"}


def test_graphs_are_not_recommended_without_a_gpu(tmp_path: Path) -> None:
    """Ranks that wait for each other on hosts get other advice than GPUs."""
    path = Path(__file__).parent / "traces" / "recorded" / "gloo"
    store = hta_sql.ingest(path, tmp_path / "store")
    for row in store.run("advice").records():
        assert "CUDA graph" not in (row["remedy"] or ""), row["rule"]


def test_missing_ranks_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one rank of four shows about waits is limited by the three others."""
    write_job(tmp_path / "job", JobSpec(ranks=4, steps=2))
    hta_sql.ingest(tmp_path / "job", tmp_path / "store", ranks=[1])
    main(["advice", str(tmp_path / "store")])
    shown = capsys.readouterr()
    assert "1 of 4 ranks" in shown.err
