"""Tests of the causes of a longer step in a comparison, with expected values computed by hand.

Each side has two ranks with two steps. A step has 1000 ns of work unless an example says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import duckdb
import pytest

from tests.macros import engine_with

MACROS = ("compared_causes",)

Cost = dict[int, int | tuple[int, int]]
"""Rank ─▶ time in each step [ns], or a pair of the time without overlap and the total time."""

Cause = tuple[list[int] | None, str, str | None, str, int, int, bool]
"""Ranks, part, idle cause, name, control [ns], test [ns], and whether a rank is a straggler."""


@dataclass(frozen=True)
class Sides:
    """Costs on both sides by part and name, in addition to the common work."""

    control: dict[tuple[str, str], Cost]
    test: dict[tuple[str, str], Cost]
    wanted: list[Cause]
    control_ranks: tuple[int, ...] = (0, 1)
    test_ranks: tuple[int, ...] = (0, 1)
    control_late: list[int] = field(default_factory=list)
    test_late: list[int] = field(default_factory=list)


MM = ("compute", "aten::mm")
LOADER = ("idle", "DataLoader")

CASES = {
    # Steps take 1100 and 1150 ns on average: 100 ns more on rank 1 only.
    "one rank": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 100, 1: 200}},
        [([1], "compute", None, "aten::mm", 100, 200, False)],
    ),
    "all ranks": Sides(
        {MM: {0: 100, 1: 120}},
        {MM: {0: 200, 1: 220}},
        [(None, "compute", None, "aten::mm", 110, 210, False)],
    ),
    # Rank 0 grew by 50 ns, which is half of rank 1's 100 ns. With 49 ns, it would not count.
    "half as much": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 150, 1: 200}},
        [(None, "compute", None, "aten::mm", 100, 175, False)],
    ),
    "less than half": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 149, 1: 200}},
        [([1], "compute", None, "aten::mm", 100, 200, False)],
    ),
    "idle": Sides(
        {LOADER: {0: 0, 1: 0}},
        {LOADER: {0: 0, 1: 80}},
        [([1], "idle", "data_loading", "DataLoader", 0, 80, False)],
    ),
    # The largest cause comes first: 100 ns before 60 ns.
    "two causes": Sides(
        {MM: {0: 100, 1: 100}, LOADER: {0: 0, 1: 0}},
        {MM: {0: 160, 1: 160}, LOADER: {0: 0, 1: 100}},
        [
            ([1], "idle", "data_loading", "DataLoader", 0, 100, False),
            (None, "compute", None, "aten::mm", 100, 160, False),
        ],
    ),
    # The step is 340 ns longer. 300 ns of that are idle, and the other 40 are less than a fifth.
    "too small a share": Sides(
        {MM: {0: 100, 1: 100}, LOADER: {0: 0, 1: 0}},
        {MM: {0: 140, 1: 140}, LOADER: {0: 300, 1: 300}},
        [(None, "idle", "data_loading", "DataLoader", 0, 300, False)],
    ),
    # 10 ns in a step of 1100 ns.
    "less than a hundredth of the step": Sides({MM: {0: 100, 1: 100}}, {MM: {0: 110, 1: 110}}, []),
    "waiting is an effect": Sides(
        {("wait", "all_reduce"): {0: 0, 1: 0}}, {("wait", "all_reduce"): {0: 100, 1: 100}}, []
    ),
    "less overlapped": Sides(
        {MM: {0: (100, 300), 1: (100, 300)}}, {MM: {0: (300, 300), 1: (300, 300)}}, []
    ),
    "a slower transfer": Sides(
        {("transfer", "all_reduce"): {0: 100, 1: 100}},
        {("transfer", "all_reduce"): {0: 200, 1: 200}},
        [(None, "transfer", None, "all_reduce", 100, 200, False)],
    ),
    "a transfer that copies expose": Sides(
        {
            ("transfer", "all_reduce"): {0: (0, 300), 1: (0, 300)},
            ("memory", "copy_"): {0: 50, 1: 50},
        },
        {
            ("transfer", "all_reduce"): {0: (90, 300), 1: (90, 300)},
            ("memory", "copy_"): {0: 120, 1: 120},
        },
        [(None, "memory", None, "copy_", 50, 120, False)],
    ),
    # Device work under a different name is not additional work.
    "renamed": Sides(
        {MM: {0: 100, 1: 100}, LOADER: {0: 0, 1: 0}},
        {("compute", "triton_mm"): {0: 100, 1: 100}, LOADER: {0: 90, 1: 90}},
        [(None, "idle", "data_loading", "DataLoader", 0, 90, False)],
    ),
    "copies of a straggler under transfers": Sides(
        {MM: {0: 100, 1: 100}, ("memory", "copy_"): {0: (0, 50), 1: (0, 50)}},
        {MM: {0: 100, 1: 105}, ("memory", "copy_"): {0: (0, 50), 1: (0, 250)}},
        [([1], "memory", None, "copy_", 50, 250, True)],
        test_late=[1],
    ),
    # Renamed work would be new on all ranks.
    "new on one rank": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 100, 1: 100}, ("memory", "copy_"): {1: 90}},
        [([1], "memory", None, "copy_", 0, 90, False)],
    ),
    # mm grew by 100 ns, but its part by only 40 ns, because another operator shrank.
    "moved within its part": Sides(
        {MM: {0: 100, 1: 100}, ("compute", "aten::add"): {0: 100, 1: 100}, LOADER: {0: 0, 1: 0}},
        {MM: {0: 200, 1: 200}, ("compute", "aten::add"): {0: 40, 1: 40}, LOADER: {0: 90, 1: 90}},
        [(None, "idle", "data_loading", "DataLoader", 0, 90, False)],
    ),
    "a shorter step": Sides(
        {MM: {0: 200, 1: 200}, LOADER: {0: 0, 1: 0}},
        {MM: {0: 100, 1: 100}, LOADER: {0: 40, 1: 40}},
        [(None, "compute", None, "aten::mm", 200, 100, False)],
    ),
    "a straggler of the test": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 100, 1: 200}},
        [([1], "compute", None, "aten::mm", 100, 200, True)],
        test_late=[1],
    ),
    "a straggler of both": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 100, 1: 200}},
        [([1], "compute", None, "aten::mm", 100, 200, False)],
        control_late=[1],
        test_late=[1],
    ),
    # Here, the control side is longer.
    "a straggler that is gone": Sides(
        {MM: {0: 100, 1: 200}},
        {MM: {0: 100, 1: 100}},
        [([1], "compute", None, "aten::mm", 200, 100, True)],
        control_late=[1],
    ),
    "ranks of one side only": Sides(
        {MM: {0: 100, 1: 100}},
        {MM: {0: 200, 2: 900}},
        [(None, "compute", None, "aten::mm", 100, 200, False)],
        test_ranks=(0, 2),
    ),
    "one rank a side": Sides(
        {MM: {3: 100}},
        {MM: {5: 200}},
        [(None, "compute", None, "aten::mm", 100, 200, False)],
        control_ranks=(3,),
        test_ranks=(5,),
    ),
}


CAUSES = """
    SELECT on_ranks, part, cause, name, control_ns, test_ns, is_straggler, diff_ns, position
    FROM lib.compared_causes(
        'control_contents', 'test_contents', 'control_idle_rows', 'test_idle_rows',
        'control_late_rows', 'test_late_rows')
    ORDER BY position
"""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine that has the macro and the six relations that it reads."""
    contents = "(rank INTEGER, step BIGINT, part VARCHAR, operator VARCHAR, kernel VARCHAR, self_ns BIGINT, dur_ns BIGINT)"
    idle = "(rank INTEGER, cause VARCHAR, name VARCHAR, call VARCHAR, idle_ns BIGINT)"
    late = "(rank INTEGER, is_straggler BOOLEAN, cause VARCHAR)"
    relations = {"contents": contents, "idle_rows": idle, "late_rows": late}
    return engine_with(
        MACROS,
        *(
            f"CREATE TABLE {side}_{name} {columns}"
            for side in ("control", "test")
            for name, columns in relations.items()
        ),
    )


def _fill(
    side: str, ranks: tuple[int, ...], costs: dict[tuple[str, str], Cost], late: list[int]
) -> None:
    for rank in ranks:
        connection().table(f"{side}_late_rows").insert([rank, rank in late, "copies"])
        for step in (1, 2):
            _add(side, rank, step, ("host", "other work"), (1000, 1000))
    for subject, by_rank in costs.items():
        for rank, cost in by_rank.items():
            for step in (1, 2):
                _add(side, rank, step, subject, cost if isinstance(cost, tuple) else (cost, cost))


def _add(side: str, rank: int, step: int, subject: tuple[str, str], times: tuple[int, int]) -> None:
    part, name = subject
    row = [rank, step, part, None if part == "idle" else name, None, *times]
    connection().table(f"{side}_contents").insert(row)
    if part == "idle":
        idle = [rank, "data_loading", name, None, times[0]]
        connection().table(f"{side}_idle_rows").insert(idle)


@pytest.mark.parametrize("name", CASES)
def test_causes(name: str) -> None:
    """Each cause has the expected position, ranks, times per step and straggler flag."""
    case = CASES[name]
    connection().begin()
    try:
        _fill("control", case.control_ranks, case.control, case.control_late)
        _fill("test", case.test_ranks, case.test, case.test_late)
        rows = connection().execute(CAUSES).fetchall()
    finally:
        connection().rollback()
    assert [row[:7] for row in rows] == case.wanted
    assert [row[7] for row in rows] == [row[5] - row[4] for row in rows]
    assert [row[8] for row in rows] == [*range(1, len(rows) + 1)]
