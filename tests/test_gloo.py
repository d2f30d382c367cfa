"""Tests of a four-rank CPU job that torch 2.13 recorded with gloo (tests/traces/recorded)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def _rank(rank: int, computes: int) -> list[dict[str, Any]]:
    """Return events [us]: computing in backward hides most of an all-reduce in the background."""
    thread = {"ph": "X", "pid": 1, "tid": 1}
    events = [
        {**thread, "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": t, "dur": 1000}
        for n, t in enumerate((0, 1000, 2000))
    ]
    for start in (0, 1000, 2000):
        name = "autograd::engine::evaluate_function: MmBackward0"
        events += [
            {**thread, "cat": "cpu_op", "name": name, "ts": start + 10, "dur": computes},
            {
                **thread,
                "cat": "user_annotation",
                "name": "gloo:all_reduce",
                "tid": 2,
                "ts": start + 100,
                # The slower rank arrives with the last bucket; the other one is woken 60 us late.
                "dur": 800 if rank else 860,
            },
        ]
    return events


def test_operators_hide_a_collective_in_the_background(
    ingest_trace: Callable[..., hta_sql.TraceStore],
) -> None:
    """While operators run, a rank does not wait, and a rank that is woken late is trusted."""
    store = ingest_trace({0: _rank(0, 200), 1: _rank(1, 850)})
    exposed = store.sql(
        "SELECT rank, exposed_transfer_ns + exposed_unmatched_ns + exposed_wait_ns FROM step_parts "
        "WHERE step = 0 ORDER BY rank"
    ).rows()
    assert exposed == [(0, 750_000), (1, 40_000)]
    assert store.sql("SELECT bool_and(end_times_match) FROM matched_collectives").rows() == [
        (True,)
    ]
