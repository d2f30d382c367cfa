"""Shares of a rank's time exclude unrecorded time in all analyses, and in the report."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from hta_sql.report.answers import first_screen
from hta_sql.report.headlines import costs_markup
from hta_sql.report.overview import overview_markup
from hta_sql.store.query.trace_store import TraceStore
from tests.unrecorded.test_unrecorded_time import busy_before

Ingest = Callable[..., TraceStore]

IDLE_NS = 2_600_000
"""Idle time of the recorded half of the window, which has 5 ms."""

COMPUTE_NS = 2_400_000


@pytest.fixture
def half(ingest_trace: Ingest) -> TraceStore:
    """Ingest a recording of 10 ms whose first half is busy with earlier, unrecorded work."""
    _, recording = busy_before(0.5)
    return ingest_trace(recording.events)


def only(store: TraceStore, analysis: str) -> dict[str, Any]:
    """Return the only row of an analysis."""
    (row,) = store.run(analysis).records()
    return row


def test_utilization_of_a_gpu_is_a_share_of_recorded_time(half: TraceStore) -> None:
    """A device that ran unrecorded work in half of the capture is as busy as in the other half."""
    row = only(half, "gpu_summary")
    assert (row["observed_ns"], row["recorded_ns"]) == (10_000_000, 5_000_000)
    assert row["utilization_pct"] == row["busy_pct"] == 48
    assert row["utilization_pct"] == only(half, "step_accounting")["compute_pct"]
    assert row["utilization_pct"] == only(half, "kpis")["utilization_pct"]


def test_a_possible_saving_is_a_share_of_recorded_time(half: TraceStore) -> None:
    """Unrecorded time, in which nothing can be saved, does not dilute a recommendation."""
    row = only(half, "advice")
    assert row["saved_pct"] == row["combined_saved_pct"] == row["saved_ns"] / 50_000
    assert "GPU idle 51.6 % of the recorded part of the capture in" in row["message"]


def test_a_loss_above_the_threshold_of_recorded_time_is_advised(ingest_trace: Ingest) -> None:
    """A rule with a threshold of 10 % applies to 16 % of the recorded time, 8 % of the capture."""
    _, recording = busy_before(0.5)
    end = {
        "ph": "X",
        "cat": "kernel",
        "name": "tail",
        "pid": 0,
        "tid": 7,
        "ts": 7_990,
        "dur": 1_790,
    }
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    events = [
        *recording.events,
        call | {"ts": 7_984, "dur": 4, "args": {"correlation": 999}},
        end | {"args": {"correlation": 999, "device": 0, "stream": 7}},
    ]
    store = ingest_trace(events)
    row = only(store, "advice")
    assert row["rule"] == "launch_bound"
    assert 10 < row["saved_pct"] < 20
    assert row["saved_ns"] < 1_000_000


def test_costs_and_idle_causes_are_shares_of_recorded_time(half: TraceStore) -> None:
    """Only the unrecorded time itself is given as a share of the whole capture."""
    costs = {row["cost"]: row for row in half.run("top_costs").records()}
    assert costs["unrecorded"]["cost_pct"] == costs["unrecorded"]["worst_rank_pct"] == 50
    idle = costs["idle_host"]
    assert idle["cost_pct"] == idle["worst_rank_pct"] == idle["cost_ns"] / 50_000
    causes = {row["cause"]: row for row in half.run("idle_causes").records()}
    assert causes.pop("unrecorded")["step_pct"] == 50
    assert sum(row["step_pct"] for row in causes.values()) == IDLE_NS / 50_000


def test_exposed_communication_of_a_group_is_a_share_of_recorded_time(
    ingest_trace: Ingest,
) -> None:
    """Process group costs and key figures give the same share of exposed communication."""
    _, recording = busy_before(0.5)
    for event in recording.events:
        if event["name"] == "kernel_0":
            event["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            event["args"] |= {"Process Group Name": "0", "Group size": 2}
    store = ingest_trace(recording.events)
    share = only(store, "kpis")["exposed_communication_pct"]
    assert share > 0
    assert only(store, "process_group_costs")["exposed_pct"] == pytest.approx(share)


def test_the_report_gives_shares_of_recorded_time(half: TraceStore) -> None:
    """The first screen names the recorded time, and no unrecorded part has a share."""
    first = first_screen(half, {})
    page = unescape(str(overview_markup(first, set()))).replace("\xa0", " ")
    assert "The capture takes 10.0 ms, 5.00 ms of it recorded; GPUs compute for 48 % of the" in page
    assert "compute <span>2.40 ms, 48.0 %</span>" in page
    assert "earlier work, unrecorded <span>5.00 ms</span>" in page
    assert "Shares are of the recorded time." in page
    assert "Shares of recorded step time" in unescape(str(costs_markup(first, {}, 5)))
