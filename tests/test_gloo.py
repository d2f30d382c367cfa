"""Tests of a four-rank CPU job that torch 2.13 recorded with gloo (tests/traces/recorded)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql

JOB = Path(__file__).parent / "traces" / "recorded" / "gloo"

STEPS = 8


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the four traces once."""
    with hta_sql.ingest(str(JOB), tmp_path_factory.mktemp("gloo") / "store", run="gloo") as opened:
        yield opened


def test_every_collective_is_there_in_its_group(store: hta_sql.TraceStore) -> None:
    """Every collective is matched within its group, which is identified by the threads.

    Sends are not matched, because their peers are not recorded.
    """
    rows = store.sql(
        "SELECT collective, match_method, pg_ranks, in_elems, count(*), count(DISTINCT collective_id) "
        "FROM collectives(include_last_profiler_step := true) GROUP BY ALL ORDER BY ALL"
    ).rows()
    assert rows == [
        ("all_gather", "ordinal", "[0,1,2,3]", 256, 4 * STEPS, STEPS),
        ("all_reduce", "ordinal", "[0,1]", 4096, 4 * STEPS, 2 * STEPS),
        ("all_reduce", "ordinal", "[0,2]", 1024, 2 * STEPS, STEPS),
        ("all_reduce", "ordinal", "[1,3]", 1024, 2 * STEPS, STEPS),
        ("all_reduce", "ordinal", "[2,3]", 4096, 4 * STEPS, 2 * STEPS),
        ("all_to_all", "ordinal", "[0,1,2,3]", 8, 4 * STEPS, STEPS),
        ("barrier", "ordinal", "[0,1,2,3]", None, 4 * STEPS, STEPS),
        ("recv", "none", None, 128, STEPS, STEPS),
        ("send", "none", None, 128, STEPS, STEPS),
    ]
    ((events,),) = store.sql("SELECT count(*) FROM annotations WHERE name LIKE 'gloo:%'").rows()
    assert events == sum(row[4] for row in rows)


def test_ranks_of_a_collective_are_there_at_the_same_time(store: hta_sql.TraceStore) -> None:
    """No rank leaves a matched collective before the last rank has arrived."""
    rows = store.sql(
        "SELECT count(*), count_if(ended_before_last_start) FROM collective_waits("
        "include_unsure := true, include_last_profiler_step := true) WHERE match_method <> 'none'"
    ).rows()
    assert rows == [(24 * STEPS, 0)]


def test_the_rank_with_more_work_is_late(store: hta_sql.TraceStore) -> None:
    """Only the rank with more work is reported as late, and no device is mentioned."""
    rows = store.run("stragglers").df()
    (late,) = rows[rows["is_straggler"]].to_dict("records")
    assert (late["rank"], late["cause"], late["subject"]) == (2, "host-bound", "aten::mm")
    assert "device" not in late["message"]
    assert "Its host takes" in late["message"]


def test_ends_tell_no_clock(store: hta_sql.TraceStore) -> None:
    """Gloo's end times give no clock estimate, because hosts wake their ranks late."""
    rows = store.sql("SELECT rank, clock_offset_ns, is_applied FROM rank_clocks").rows()
    assert [rank for rank, *_ in rows] == [0, 1, 2, 3]
    assert not any(is_applied for *_, is_applied in rows)


STARTS, WOKEN_LATE = (0, 1000, 2000), (60, 0, 0)
"""Start of each step, and how much later than rank 1 rank 0 continues after its collective [us]."""


def _trace(rank: int, computes: int) -> dict[str, Any]:
    """Return a trace in which operators hide a part of an all-reduce in the background."""
    thread = {"ph": "X", "pid": 1, "tid": 1}
    events = []
    for number, (start, late) in enumerate(zip(STARTS, WOKEN_LATE, strict=True)):
        step, operator = (
            f"ProfilerStep#{number}",
            "autograd::engine::evaluate_function: MmBackward0",
        )
        reduces = {"tid": 2, "ts": start + 100, "dur": 800 + (0 if rank else late)}
        events += [
            {**thread, "cat": "user_annotation", "name": step, "ts": start, "dur": 1000},
            {**thread, "cat": "cpu_op", "name": operator, "ts": start + 10, "dur": computes},
            {**thread, "cat": "user_annotation", "name": "gloo:all_reduce", **reduces},
        ]
    group = {"pg_name": "0", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": [0, 1]}
    info = {"backend": "gloo", "rank": rank, "world_size": 2, "pg_config": [group]}
    return {"host_name": "node-0", "distributedInfo": info, "traceEvents": events}


@pytest.fixture
def overlapping(tmp_path: Path) -> Iterator[hta_sql.TraceStore]:
    """Ingest two ranks of one host, of which rank 1 computes for longer."""
    for rank, computes in enumerate((200, 850)):
        path = tmp_path / "traces" / f"rank{rank}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(_trace(rank, computes)), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "store") as opened:
        yield opened


def test_operators_hide_a_collective_in_the_background(overlapping: hta_sql.TraceStore) -> None:
    """While operators run, a rank neither waits nor transfers."""
    exposed = overlapping.sql(
        "SELECT rank, exposed_transfer_ns + exposed_unmatched_ns + exposed_wait_ns FROM step_parts "
        "WHERE step = 0 ORDER BY rank"
    ).rows()
    assert exposed == [(0, 750_000), (1, 40_000)]


def test_a_rank_that_the_system_wakes_late_is_trusted(overlapping: hta_sql.TraceStore) -> None:
    """On one host, ends that differ by more than 50 us do not make waits uncertain."""
    assert overlapping.sql(
        "SELECT max(end_spread_ns), bool_and(end_times_match) FROM matched_collectives"
    ).rows() == [(60_000, True)]


def _stacked_trace(rank: int) -> dict[str, Any]:
    """Return a trace with Python frames of four ranks, of which rank 2 multiplies for longer."""
    thread = {"ph": "X", "pid": 1, "tid": 1}
    frame = f"<built-in method run_backward of torch._C._EngineBase object at 0x7f00000{rank}>"
    multiplies = 400 if rank == 2 else 100
    events = []
    for number in range(8):
        start = 2000 * number
        arrives = start + 500 + multiplies
        reduces = {"tid": 2, "ts": arrives, "dur": start + 1000 - arrives}
        events += [
            {
                **thread,
                "cat": "user_annotation",
                "name": f"ProfilerStep#{number}",
                "ts": start,
                "dur": 1100,
            },
            {
                **thread,
                "cat": "python_function",
                "name": frame,
                "ts": start + 10,
                "dur": 480 + multiplies,
            },
            {**thread, "cat": "cpu_op", "name": "aten::mm", "ts": start + 20, "dur": multiplies},
            {**thread, "cat": "user_annotation", "name": "gloo:all_reduce", **reduces},
        ]
    group = {"pg_name": "0", "backend_config": "cpu:gloo", "pg_size": 4, "ranks": [0, 1, 2, 3]}
    info = {"backend": "gloo", "rank": rank, "world_size": 4, "pg_config": [group]}
    return {"host_name": "node-0", "distributedInfo": info, "traceEvents": events}


def test_a_python_frame_is_the_same_on_every_rank(tmp_path: Path) -> None:
    """Frames with the addresses of objects, which differ between ranks, are compared by name."""
    (tmp_path / "traces").mkdir()
    for rank in range(4):
        text = json.dumps(_stacked_trace(rank))
        (tmp_path / "traces" / f"rank{rank}.json").write_text(text, encoding="utf-8")
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "store") as store:
        found = store.sql("SELECT rank, cause, subject FROM stragglers() WHERE is_straggler").rows()
    assert found == [(2, "host-bound", "aten::mm")]
