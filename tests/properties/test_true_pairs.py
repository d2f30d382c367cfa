"""The headline of a comparison states the planted difference, whichever steps it affects."""

from __future__ import annotations

import gzip
import json
import re
import statistics
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql import synthetic
from hta_sql.comparison.changes import Comparison, compare_steps
from hta_sql.comparison.sides import Side
from tests.parity.jobs import SHARED
from tests.properties.true_pairs import BASE, PAIRS, pairs_store
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest both runs of each pair."""
    with hta_sql.open(pairs_store(tmp_path_factory)) as opened:
        yield opened


@cache
def compared(store: TraceStore, name: str) -> Comparison:
    """Compare the runs of a pair."""
    return compare_steps(Side(store, f"{name}-control"), Side(store, f"{name}-test"))


def step_times(store: TraceStore, run: str) -> list[float]:
    """Return the duration of each step except the last, averaged over ranks [ns]."""
    rows = store.sql(
        "SELECT avg(dur) FROM steps WHERE run = $run AND NOT is_last GROUP BY step", {"run": run}
    ).rows()
    return [mean for (mean,) in rows]


@pytest.mark.parametrize("name", PAIRS)
def test_the_headline_is_true(store: TraceStore, name: str) -> None:
    """The step times, verdict, slow steps and changes of a comparison are the planted ones."""
    told, pair = compared(store, name), PAIRS[name]
    step = told.step
    for side in ("control", "test"):
        times = step_times(store, f"{name}-{side}")
        expected = 8 if (name, side) == ("fewer-steps", "test") else 20
        assert step[f"{side}_step_count"] == len(times) == expected
        assert step[f"{side}_ns"] == pytest.approx(statistics.fmean(times), abs=1)
        assert step[f"{side}_median_ns"] == pytest.approx(statistics.median(times), abs=1)
    assert step["verdict"] in pair.verdicts
    slow = step["test_slow_steps"]
    assert step["control_slow_steps"] is None
    assert (slow is None) == (pair.slow_steps is None)
    assert (slow and re.sub(r"\d+(\.\d+)?(?= %| times)", "##", slow)) == pair.slow_steps
    changed = {(row["part"], row["subject"]) for row in told.changes}
    assert set(pair.rows) <= changed
    assert all(text in told.message for text in pair.lead), told.message
    if pair.slow_steps:
        assert pair.slow_steps.partition("##")[0] in told.message


@pytest.mark.parametrize(
    "name", [name for name, pair in PAIRS.items() if pair.verdicts[0] != "unchanged"]
)
def test_a_pair_the_other_way_round_says_the_opposite(store: TraceStore, name: str) -> None:
    """Swapping control and test inverts difference and verdict, and swaps the slow steps."""
    there = compared(store, name).step
    back = compare_steps(Side(store, f"{name}-test"), Side(store, f"{name}-control")).step
    opposite = {
        "slower": "faster",
        "faster": "slower",
        "slower in some steps": "faster in some steps",
    }
    assert back["diff_ns"] == -there["diff_ns"]
    assert back["verdict"] == opposite[there["verdict"]]
    assert back["control_slow_steps"] == there["test_slow_steps"]


def test_two_steps_a_side_are_never_called_unchanged(store: TraceStore) -> None:
    """With two steps per side, a late rank is found, and no real difference counts as noise."""
    late = compare_steps(
        Side(store, "intermittent-control", steps=[11, 12]),
        Side(store, "intermittent-test", steps=[13, 17]),
    )
    assert late.step["verdict"] == "slower"
    assert re.search(r"[4-9]\.\d x slower|beyond noise", late.message)
    for name in PAIRS:
        sides = [Side(store, f"{name}-{side}", steps=[13, 15]) for side in ("control", "test")]
        step = compare_steps(*sides).step
        assert step["verdict"] not in ("unchanged", "within noise") or abs(step["diff_pct"]) < 2


PUBLIC = {
    # Quantized communication (qcomm): fewer bytes to transfer, new element-wise kernels to quantize them.
    "torchrec_a2a_5": ("run0", "qcomm_run0", {"unknown", "faster"}, ["elementwise"]),
    # A different GPU, world size and version: computation takes twice as long.
    "hta_trace_diff": ("control", "test", {"slower"}, ["computation", "gemm"]),
    # Both have the same single step; they differ only in the last step, which does not count.
    "hta_trace_compare": ("base", "test", {"unchanged"}, ["Nothing changed"]),
}
"""Pair of public traces ─▶ its two folders, the valid verdicts, and strings in the headline."""


@pytest.mark.skipif(not (SHARED / "traces").is_dir(), reason="no real traces here")
@pytest.mark.parametrize("name", PUBLIC)
def test_the_headline_of_public_traces_is_true(name: str, tmp_path: Path) -> None:
    """The headline equals the mean step time in the JSON files, without the last step."""
    control, test, verdicts, lead = PUBLIC[name]
    for side in (control, test):
        folder = SHARED / "traces" / f"{name}_{side}"
        hta_sql.ingest(folder, tmp_path / "store", run=side, jobs=1).close()
    with hta_sql.open(tmp_path / "store") as opened:
        told = compare_steps(Side(opened, control), Side(opened, test))
    for side, key in ((control, "control_ns"), (test, "test_ns")):
        assert told.step[key] == pytest.approx(
            mean_step(SHARED / "traces" / f"{name}_{side}"), 1e-3
        )
    assert told.step["verdict"] in verdicts
    assert all(text in told.message for text in lead), told.message


def mean_step(folder: Path) -> float:
    """Return the mean step time without the last step of each rank, read from the JSON [ns]."""
    times = []
    for file in folder.glob("*.json*"):
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt") as text:
            events = json.load(text)["traceEvents"]
        steps = sorted(
            (event["ts"], event["dur"])
            for event in events
            if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
        )
        times += [dur * 1000 for _, dur in (steps[:-1] or steps)]
    return statistics.fmean(times)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest two captures of one step, with 20 and with 90 kernels from before the capture."""

    def make(store: Path) -> None:
        for run, early in (("few", 20), ("many", 90)):
            traces = store.parent / run
            synthetic.write_job(
                traces, replace(BASE, steps=1, seed=len(run), early_kernels=early, stragglers={})
            )
            hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
        hta_sql.publish(store).close()

    with hta_sql.open(made_once(tmp_path_factory, "one-step-captures", make)) as opened:
        yield opened


OWN = """
    SELECT g.run, g.rank, g.step, count(*) AS op_count, sum(g.dur)::BIGINT AS dur_ns
    FROM gpu_ops AS g JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.launch_id
    WHERE g.class <> 'sync' GROUP BY ALL ORDER BY ALL
"""
CONTENTS = """
    SELECT c.run, c.rank, c.step, sum(c.op_count)::BIGINT AS op_count, sum(c.dur_ns)::BIGINT AS dur_ns
    FROM step_contents(include_last_profiler_step := true) AS c
    WHERE c.part IN ('compute', 'transfer', 'wait', 'memory') GROUP BY ALL ORDER BY ALL
"""
STEPS = """
    SELECT s.run, s.rank, s.step, s.gpu_op_count AS op_count, s.gpu_sum_ns AS dur_ns
    FROM profiler_steps(include_last_profiler_step := true) AS s ORDER BY ALL
"""


def test_a_step_has_the_operations_that_it_launched(captures: TraceStore) -> None:
    """All analyses agree on a step's operations; kernels from before the capture are separate."""
    own = captures.sql(OWN).rows()
    assert len(own) == 4
    assert captures.sql(CONTENTS).rows() == own
    assert captures.sql(STEPS).rows() == own
    other = captures.sql(
        "SELECT run, rank, operator, op_count FROM step_contents() WHERE part = 'other' "
        "AND operator = '[no launch]' GROUP BY ALL HAVING sum(op_count) > 0"
    ).rows()
    assert other
    listed = captures.sql(
        "SELECT run, rank, unlaunched_op_count FROM profiler_steps() ORDER BY ALL"
    ).rows()
    assert listed == [("few", 0, 20), ("few", 1, 20), ("many", 0, 90), ("many", 1, 90)]


def test_one_step_against_one_counts_its_own_kernels(captures: TraceStore) -> None:
    """Kernels from before the capture cause no change, and the significance is unknown."""
    told = compare_steps(Side(captures, "few"), Side(captures, "many"))
    assert told.step["verdict"] == "unknown"
    assert "significance unknown" in told.message
    assert not [
        row
        for row in told.of_level("row")
        if row["part"] in ("compute", "memory") and row["control_count"] != row["test_count"]
    ]
    assert not {"more often", "less often", "added", "removed"} & {
        row["verdict"] for row in told.of_level("row")
    }


def test_each_of_many_steps_has_the_operations_that_it_launched(store: TraceStore) -> None:
    """Each step of every run has the operations that it launched."""
    assert store.sql(CONTENTS).rows() == store.sql(STEPS).rows() == store.sql(OWN).rows()
