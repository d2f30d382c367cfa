"""Tests that charts of thousands of ranks or stack levels stay small and correct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql import charts
from hta_sql.charts.drawing import style
from hta_sql.charts.kernels.summary import MEASURES
from hta_sql.charts.shown import themed
from tests.drawn_marks import drawn_rows
from tests.marks.rows import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable


RANKS = 4096
MEGABYTE = 1_000_000


def temporal(ranks: int) -> pd.DataFrame:
    """Return the temporal breakdown of many ranks that differ slightly."""
    rank = pd.Series(range(ranks))
    parts = {
        "compute_ns": 12_345_678_901 + rank * 1_234_567,
        "exposed_communication_ns": 2_345_678_901 + rank * 321_007,
        "exposed_memory_ns": 345_678_901 + rank * 7_001,
        "idle_ns": 1_234_567_891 - rank * 13_577,
    }
    return pd.DataFrame({"run": "job", "rank": rank, **parts})


def idle(ranks: int, streams: int) -> pd.DataFrame:
    """Return the idle time of many streams, by cause."""
    rows = [
        ("job", rank, 0, stream, cause, 1_234_567 + rank * stream)
        for rank in range(ranks)
        for stream in range(streams)
        for cause in parts_of("idle_time_breakdown")
    ]
    return pd.DataFrame(rows, columns=["run", "rank", "device", "stream", "category", "idle_ns"])


def kernels(ranks: int) -> pd.DataFrame:
    """Return the statistics of thirty kernels on each of many ranks."""
    rows = [
        ("job", rank, class_, f"{class_}_{number}", 10, 1_000_000 + rank + number, 1e5, 3.3)
        for rank in range(ranks)
        for class_ in ("computation", "communication", "memory")
        for number in range(10)
    ]
    columns = ["run", "rank", "class", "name", "kernel_count", "sum_ns", "mean_ns", "class_pct"]
    return pd.DataFrame(rows, columns=columns)


def traffic(ranks: int) -> pd.DataFrame:
    """Return the bytes of all-to-alls within groups of 64 ranks, and between every 64th rank."""
    pairs = [(src, src - src % 64 + dst) for src in range(ranks) for dst in range(64)]
    pairs += [(src, dst) for src in range(0, ranks, 64) for dst in range(0, ranks, 64)]
    return pd.DataFrame(
        {
            "run": "job",
            "src_rank": [src for src, _ in pairs],
            "dst_rank": [dst for _, dst in pairs],
            "collective_count": 4,
            "known_count": 4,
            "known_bytes": 987_654_321,
            "reason": None,
        }
    )


def crossed(**values: Any) -> pd.DataFrame:
    """Return one row for each combination of the given column values."""
    found = pd.DataFrame({"run": ["job"]})
    for name, several in values.items():
        found = found.merge(pd.DataFrame({name: several}), how="cross")
    return found


def overview(ranks: int) -> pd.DataFrame:
    """Return ten steps on each of many ranks."""
    table = crossed(rank=range(ranks), step=range(10))
    far = {"non_wait_ns": 45_678_901 + table["rank"] * 1_001, "slow_count": table["rank"] % 7}
    return table.assign(host_name="node-17", verdict="as usual", **far)


def utilization(ranks: int) -> pd.DataFrame:
    """Return the utilization of many ranks in a hundred time buckets."""
    table = crossed(rank=range(ranks), bucket=range(100))
    starts = table["bucket"] * 1_234_567
    busy = 1_000_000 + table["rank"] * 3 + table["bucket"]
    return table.assign(start_ns=starts, dur_ns=1_234_567, observed_ns=1_234_567, busy_ns=busy)


def occurrences(ranks: int) -> pd.DataFrame:
    """Return twenty occurrences of three operators on each of many ranks."""
    table = crossed(
        name=["a" * 300, "b" * 300, "c" * 300], rank=range(ranks), position=range(1, 21)
    )
    starts = table["position"] * 7_654_321 + table["rank"] * 11
    lasts = 123_456 + table["rank"] + table["name"].str[0].map(ord)
    return table.assign(start_ns=starts, dur_ns=lasts, verdict="as usual")


def specials(ranks: int) -> pd.DataFrame:
    """Return the counts of twenty kinds of operators on each of many ranks."""
    table = crossed(kind=[f"kind {number}" for number in range(20)], rank=range(ranks))
    return table.assign(op_count=1_234, is_different=table["rank"] % 3 == 0, meaning="why" * 30)


def stages(ranks: int) -> pd.DataFrame:
    """Return the step parts of many ranks, as sixteen pipelines of sixteen stages."""
    table = crossed(rank=range(ranks))
    parts = dict.fromkeys(parts_of("pipeline_stages"), 12345678 + table["rank"] * 1001)
    return table.assign(pipeline=table["rank"] % 16, stage=table["rank"] // (ranks // 16), **parts)


def step_trace(ranks: int) -> pd.DataFrame:
    """Return three steps on each of many ranks, split into three parts."""
    table = crossed(rank=range(ranks), step=range(3))
    parts = ("iteration_interval_ns", "forward_backward_ns", "tail_ns")
    times = dict.fromkeys(parts, 12345678 + table["rank"] * 1001)
    return table.assign(total_ns=40_000_000 + 3_003 * table["rank"], **times)


def messages(ranks: int) -> pd.DataFrame:
    """Return a hundred messages from each rank to the rank sixteen further on."""
    table = crossed(src_rank=range(ranks), number=range(100))
    starts = table["number"] * 1_234_567 + table["src_rank"]
    return table.assign(
        collective_id=range(len(table)),
        dst_rank=table["src_rank"] + 16,
        src_stage=table["src_rank"] // 16,
        dst_stage=table["src_rank"] // 16 + 1,
        step=3,
        is_forward=True,
        send_start_ns=starts,
        recv_start_ns=starts - 1_001,
        send_wait_ns=0,
        recv_wait_ns=1_001,
        end_ns=starts + 10_001,
    )


def gpus(ranks: int) -> pd.DataFrame:
    """Return the summary of one GPU per rank, with all values known."""
    table = crossed(rank=range(ranks))
    shares = {name: 12.345678 * place + table["rank"] / 100 for place, name in enumerate(MEASURES)}
    return table.assign(
        device=table["rank"] % 8, device_name="GPU", tensor_core_unknown_pct=1.5, **shares
    )


def arrivals(ranks: int) -> pd.DataFrame:
    """Return a collective at which many ranks arrive one after another."""
    table = crossed(rank=range(ranks))
    starts = 987_654_321 + table["rank"] * 1_001
    return table.assign(
        collective_id=17,
        collective="all_reduce",
        host_name="node-17",
        position=table["rank"] + 1,
        start_ns=starts,
        wait_ns=starts.max() - starts,
        end_ns=starts.max() + 123_456,
    )


def hanging(ranks: int) -> pd.DataFrame:
    """Return five groups of many ranks, in which every rank waits for the same missing rank."""
    table = crossed(
        channel=[f"dp ({number})" for number in range(5)],
        rank=range(ranks),
        collective_seq_id=range(989, 1_001),
    )
    is_stuck = table["collective_seq_id"] == 1_000
    state = is_stuck.map({True: "waiting", False: "finished"})
    is_culprit = is_stuck & (table["rank"] == ranks - 7)
    state = state.mask(is_culprit, "missing")
    return table.assign(is_stuck=is_stuck, is_culprit=is_culprit, state=state, op=table["channel"])


@pytest.mark.parametrize(
    ("name", "table", "rows"),
    [
        ("temporal_breakdown", lambda: temporal(RANKS), RANKS),
        ("idle_time_breakdown", lambda: idle(RANKS, 3), RANKS),
        (
            "comm_comp_overlap",
            lambda: pd.DataFrame(
                {
                    "run": "job",
                    "rank": range(RANKS),
                    "communication_ns": 987_654_321,
                    "overlapped_ns": 123_456_789,
                }
            ),
            RANKS,
        ),
        ("gpu_kernels_by_name", lambda: kernels(RANKS), 30),
        ("all_to_all_traffic", lambda: traffic(RANKS), 64 * 64),
        ("cluster_overview", lambda: overview(RANKS), 96 * 10),
        ("utilization_over_time", lambda: utilization(RANKS), 96 * 34),
        ("operator_across_ranks", lambda: occurrences(RANKS), 32 * 20 * 3),
        ("special_operators", lambda: specials(RANKS), 20 * 20),
        ("gpu_summary", lambda: gpus(RANKS), RANKS * 5),
        ("pipeline_stages", lambda: stages(RANKS), RANKS),
        ("cluster_step_trace", lambda: step_trace(RANKS), RANKS),
        # Two bars for the transfer, one for the wait, and the two ends of the line.
        ("p2p_pairs", lambda: messages(RANKS), 600 * 5),
        ("collective_arrivals", lambda: arrivals(RANKS), 96 * 2 - 1),
        ("hang_grid", lambda: hanging(RANKS), 4 * 96 * 12),
    ],
)
def test_4096_ranks_stay_below_2_mb(
    name: str, table: Callable[[], pd.DataFrame], rows: int
) -> None:
    """A chart of thousands of ranks has a bounded number of rows and bytes.

    Data that would exceed the bound is aggregated first.
    """
    chart = themed(charts.FIGURES[name](table()))
    assert len(drawn_rows(chart)) == rows
    assert len(chart.to_json(indent=None)) < 2 * MEGABYTE


def test_the_rank_for_which_all_wait_is_drawn_among_many() -> None:
    """The one rank that all others wait for is marked as the cause."""
    rows = drawn_rows(charts.FIGURES["hang_grid"](hanging(RANKS)))
    assert {row["rank"] for row in rows if row["cause"] == "yes"} == {RANKS - 7}


def test_many_ranks_are_drawn_where_they_are() -> None:
    """With more than 40 ranks, the axis is the rank number, so that a missing rank leaves a gap."""
    table = temporal(50).drop(index=[7])
    spec = charts.FIGURES["temporal_breakdown"](table, percent=True).to_dict()
    (panel,) = spec["vconcat"]
    assert panel["encoding"]["x"]["scale"]["domain"] == [-0.5, 49.5]
    (rows,) = spec["datasets"].values()
    assert [row["at"] for row in rows][6:8] == [6, 8]


def test_runs_have_panels_of_their_own_where_each_has_many_ranks() -> None:
    """Only the first six runs have panels, and a note says so."""
    table = pd.concat([temporal(10).assign(run=f"run{number}") for number in range(8)])
    spec = charts.FIGURES["temporal_breakdown"](table, percent=True).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == [
        f"Run run{number}" for number in range(6)
    ]
    assert "The first 6 of 8 runs." in spec["title"]["subtitle"]


def test_a_flame_graph_of_any_depth_shows_the_widest() -> None:
    """Three thousand levels need no recursion, and names that share a long prefix stay distinct."""
    deep = ";".join(f"f.py({level}): f" for level in range(3000))
    long = "x" * 500
    rows = [(deep, 5_000), (f"{deep};{long}a{long}", 0), (f"top;{long}a{long}", 40), ("top", 7)]
    table = pd.DataFrame(rows, columns=["stack", "host_ns"])
    table = table.assign(run="job", rank=0, device_ns=0)
    drawn = drawn_rows(themed(charts.FIGURES["folded_stacks"](table)))
    assert len(drawn) == 600
    assert {row["time"] for row in drawn} == {5.0}
    table = table[2:]
    drawn = drawn_rows(themed(charts.FIGURES["folded_stacks"](table)))
    assert [row["time"] for row in drawn] == [47.0, 40.0]
    assert len(drawn[1]["name"]) == style.NAME_CHARACTERS
