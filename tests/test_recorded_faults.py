"""Tests on three CPU jobs that torch 2.13 recorded, with one fault each.

The traces are in tests/traces/recorded/faults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hta_sql

JOBS = Path(__file__).parent / "traces" / "recorded" / "faults"

FAULTS = {
    "slow_loader": ("data_loading", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "row_loop": ("indexing_loops", "aten::select"),
    "unfused_optimizer": ("unfused_optimizer", "Optimizer.step#Adam.step"),
}
"""Job ─▶ the expected rule and its subject."""


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
