"""Tests that compare says what it compares, and names both sides apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.comparison.headline import headline
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7}


def write(path: Path, durations: list[float], *, steps: bool) -> str:
    """Write a trace with a kernel of each duration, each in its own step if requested."""
    events: list[dict[str, Any]] = []
    for number, dur in enumerate(durations):
        place = {"device": 0, "stream": 7, "correlation": number + 1}
        events.append({**KERNEL, "ts": 1000 * number + 20, "dur": dur, "args": place})
        host = {"ph": "X", "pid": 1, "tid": 1, "args": {"correlation": number + 1}}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1000 * number + 5}
        events.append({**host, **launch, "dur": 5})
        if steps:
            step = {"cat": "user_annotation", "name": f"ProfilerStep#{number}"}
            events.append({**host, **step, "ts": 1000 * number, "dur": 900, "args": {}})
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with runs that have steps, and runs that have none."""
    folder = tmp_path_factory.mktemp("units")
    path = folder / "job.store"
    for run, long, steps in (
        ("a", 100, True),
        ("b", 200, True),
        ("c", 100, False),
        ("d", 300, False),
    ):
        ingest_only({0: write(folder / f"{run}.json", [long] * 4, steps=steps)}, path, run=run)
    return path


def test_captures_without_steps_are_called_so(cli: Cli, store: Path) -> None:
    """Without steps on both sides, whole captures are compared."""
    out = cli("compare", f"{store}:c", f"{store}:d").out
    assert "A capture takes" in out
    assert "part of a capture" in out
    assert "step" not in out.replace("profiler steps", "")


def test_a_step_is_not_compared_with_a_capture(cli: Cli, store: Path) -> None:
    """If only one side has steps, the difference has no headline."""
    out = cli("compare", f"{store}:a", f"{store}:c").out
    assert out.splitlines()[0].endswith("not comparable")
    assert "Only one side has profiler steps" in out
    assert "A step takes" not in out


def test_a_step_of_microseconds_is_none(cli: Cli, tmp_path: Path) -> None:
    """After a single prof.step(), the only step has almost nothing of the recording."""
    path = write(tmp_path / "e.json", [500] * 9, steps=False)
    trace = json.loads(Path(path).read_text(encoding="utf-8"))
    step = {"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "name": "ProfilerStep#1"}
    trace["traceEvents"].append({**step, "ts": 8990, "dur": 19, "args": {}})
    Path(path).write_text(json.dumps(trace), encoding="utf-8")
    ingest_only({0: path}, tmp_path / "job.store", run="e")
    ingest_only({0: path}, tmp_path / "job.store", run="f")
    out = cli("compare", f"{tmp_path}/job.store:e", f"{tmp_path}/job.store:f").out
    assert "The steps of e and f last less than 1 % of the recording" in " ".join(out.split())
    assert "A step takes" not in out


def test_headings_of_the_sides_differ(cli: Cli, store: Path) -> None:
    """One run compared with itself has two headings, too."""
    same = cli("compare", f"{store}:a", "--steps", "0", "--test-steps", "1").out
    (heads,) = [line for line in same.splitlines() if line.startswith("part of a step")]
    assert "a (steps 0)" in heads
    assert "a (steps 1)" in heads
    two_stores = cli("compare", f"{store}:a", f"{store}:a").out
    (heads,) = [line for line in two_stores.splitlines() if line.startswith("part of a step")]
    assert heads.split()[4:6] == ["control", "test"]


ROW = {"noise_ns": 1.0, "control_slow_steps": None, "test_slow_steps": None, "is_change": False}


def told(step: dict[str, Any], rows: list[dict[str, Any]], causes: list[dict[str, Any]]) -> str:
    """Return the headline for rows with these values."""
    whole = {**ROW, "level": "step", "part": None, "control_ns": 1_000_000, "diff_pct": 10.0}
    whole |= {"control_step_count": 9, "test_step_count": 9, "control_median_ns": None}
    whole |= {"test_ns": 1_100_000, "diff_ns": 100_000, "verdict": "slower", **step}
    details = [{**ROW, "level": "row", "verdict": "longer", **row} for row in rows]
    return headline(("a", "b"), [whole, *details], causes, [])


CAUSE = {"on_ranks": None, "diff_ns": 90_000, "name": "aten::mm", "part": "compute", "cause": None}
CAUSE |= {"is_straggler": False}


def test_what_is_not_significant_is_no_cause() -> None:
    """A difference within the noise is called that; a significant one has a cause."""
    assert "Cause: aten::mm" in told({"is_change": True}, [], [CAUSE])
    sentence = told({"is_change": False, "verdict": "unknown"}, [], [CAUSE])
    assert "Cause" not in sentence
    assert "not statistically significant: aten::mm" in sentence


def test_bookkeeping_is_no_headline() -> None:
    """Work outside of steps and the lag of the device often cancel each other."""
    rows = [
        {"part": "other", "subject": "[no launch]", "diff_ns": 80_000, "is_change": True},
        {"part": "compute", "subject": "aten::mm", "diff_ns": 30_000, "is_change": True},
    ]
    sentence = told({"is_change": True}, rows, [])
    assert "aten::mm" in sentence
    assert "[no launch]" not in sentence


def test_a_wait_is_no_cause() -> None:
    """If only waits have changed, the headline says that their cause is unknown."""
    rows = [{"part": "wait", "subject": "all_reduce", "diff_ns": 80_000, "is_change": True}]
    sentence = told({"is_change": True}, rows, [])
    assert "wait 80.000 µs longer for each other in all_reduce; no cause was found." in sentence
    assert "Largest change" not in sentence


def test_less_is_not_shorter() -> None:
    """A step takes less, not shorter."""
    assert "takes 100.000 µs less" in told({"diff_ns": -100_000, "test_ns": 900_000}, [], [])


def test_unknown_steps_and_ranks_are_listed(cli: Cli, store: Path) -> None:
    """The error names the steps and ranks that there are."""
    shown = cli("run", f"{store}", "step_accounting", "--runs", "a", "--steps", "7")
    shown.fails(1, "No step 7", "available steps: 0-3 in run a")
    shown = cli("run", f"{store}", "step_accounting", "--runs", "c", "--steps", "7")
    shown.fails(1, "No step 7", "no steps")
    shown = cli("run", f"{store}", "step_accounting", "--runs", "a", "--steps", "3")
    assert "The last profiler step is excluded by default (include_last_profiler_step)" in shown.out
    cli("report", store, "-o", "x.html", "--steps", "7").fails(2, "a report covers all steps")
    cli("doctor", store, "--steps", "7").fails(2, "No such option '--steps'. See:")
    cli("advice", f"{store}", "--ranks", "5").fails(1, "No rank 5", "available ranks: 0 in run a")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpu_idle", "idle"),
        ("bottleneck", "top_costs"),
        ("flame_graph", "folded_stacks"),
        ("nccl_time", "process_group_costs"),
        ("stragler", "stragglers"),
        ("kernels", "kernel_table"),
        ("operators", "operator_table"),
        ("memory", "memory_peaks"),
        ("nccl", "process_group_costs"),
        ("slow_steps", "step_time_stats"),
    ],
)
def test_other_words_for_an_analysis(cli: Cli, store: Path, name: str, meant: str) -> None:
    """A name suggests an analysis by its meaning, then by its letters."""
    cli("run", f"{store}", name).fails(1, "Did you mean", meant)
