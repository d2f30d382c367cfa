"""Tests on CPU jobs that torch 2.13 recorded, with one fault each.

The traces are in tests/traces/recorded/faults. In two of the jobs, the fault was also timed with
Python's clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.report.first_screen import HOST_PARTS

JOBS = Path(__file__).parent / "traces" / "recorded" / "faults"

FAULTS = {
    "slow_loader": ("data_loading", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "row_loop": ("indexing_loops", "aten::select"),
    "unfused_optimizer": ("unfused_optimizer", "Optimizer.step#Adam.step"),
}
"""Job ─▶ the expected rule and its subject."""


SPINNING_NS = 30_849_805
"""Time of the fault of spinning_line in its step, as measured by the job [ns]."""

LATE_NS = (10_383_184, 10_275_794, 10_140_873, 10_147_212, 10_614_189)
"""Time by which rank 1 of late_rank is late in each step, as measured by the job [ns]."""

SHARE = 0.05
"""Maximum error of a measured share of the step; host_accounting also counts the steps' own calls."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Return the advice for each job, after checking that each evidence query has rows."""
    store = tmp_path_factory.mktemp("faults") / "store"
    for job in FAULTS:
        traces = {0: str(JOBS / job / "rank0.json.gz")}
        hta_sql.ingest_shard(traces, store, run=job, jobs=1, shard=(1, 1))
    found: dict[str, list[dict[str, Any]]] = {job: [] for job in FAULTS}
    with hta_sql.publish(store) as opened:
        for row in opened.run("advice").records():
            assert len(opened.sql(row["evidence_sql"]))
            found[row["run"]].append(row)
    return found


@pytest.mark.parametrize("job", FAULTS)
def test_the_fault_is_what_advice_speaks_of(
    job: str, rows: dict[str, list[dict[str, Any]]]
) -> None:
    """Only the rule for the fault applies, with the message for a trace without a GPU."""
    (row,) = rows[job]
    assert (row["rule"], row["subject"]) == FAULTS[job]
    assert row["severity"] == "high"
    assert row["message_code"].startswith(f"advice.{row['rule']}_without_")
    assert row["message_code"].endswith("_gpu")


def test_a_loop_tells_its_turns_and_its_body(rows: dict[str, list[dict[str, Any]]]) -> None:
    """The advice counts the forty iterations of the loop and names the operators in its body."""
    (row,) = rows["row_loop"]
    assert row["event_count"] == 40
    assert "aten::select, aten::mul_" in row["message"]


def test_a_line_of_python_is_named_with_its_share(tmp_path: Path) -> None:
    """A line that computes without operators is the subject, and its share is the measured one."""
    job = JOBS / "spinning_line"
    with hta_sql.ingest(str(job), tmp_path / "store") as store:
        (step,) = store.run("host_accounting").records()
        (advice,) = store.run("advice").records()
    assert sum(step[part] for part in HOST_PARTS) == step["step_ns"]
    assert abs(step["other_ns"] - SPINNING_NS) <= SHARE * step["step_ns"]
    assert advice["rule"] == "largest_loss"
    assert advice["affected_ns"] == step["other_ns"]
    assert advice["subject"].endswith(": score")


def test_a_rank_late_in_python_is_late_by_the_measured_time(tmp_path: Path) -> None:
    """Work without operators or frames makes a rank late, and no operator is named as the cause."""
    with hta_sql.ingest(str(JOBS / "late_rank"), tmp_path / "store") as store:
        steps = store.run("host_accounting").records()
        late = {row["rank"]: row for row in store.run("stragglers").records()}
    for step in steps:
        assert sum(step[part] for part in HOST_PARTS) == step["step_ns"]
    mine = [step for step in steps if step["rank"] == 1]
    for step, late_ns in zip(mine, LATE_NS, strict=True):
        assert abs(step["other_ns"] - late_ns) <= SHARE * step["step_ns"]
    assert late[0]["verdict"] == "none"
    assert late[1]["verdict"] == "straggler"
    assert late[1]["message_code"] == "stragglers.outside_operators"
    assert late[1]["next_analysis"] == "host_accounting"
    assert late[1]["subject"] is None
    whole = sum(step["step_ns"] for step in mine)
    assert abs(late[1]["cause_ns"] - sum(LATE_NS)) <= SHARE * whole
