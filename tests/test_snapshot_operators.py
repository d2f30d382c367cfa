"""Allocations of memory snapshots joined to the operators and steps of a trace of the same rank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hta_sql

BASE_NS = 1_700_000_000_000_000_000
OPERATORS = ("aten::mm", "aten::relu", "aten::add")


def allocations(count: int = 30) -> list[tuple[int, int]]:
    """Return addresses and block sizes; each size occurs twice in a row, and no address is reused."""
    return [(4096 * (n + 1), 512 * (1 + n // 2)) for n in range(count)]


def joined(
    folder: Path,
    in_trace: Sequence[tuple[int, int]],
    in_snapshot: Sequence[tuple[int, int]],
    base_ns: int | None = None,
) -> list[dict[str, Any]]:
    """Ingest a trace that allocates in one of three operators by the address, and a snapshot; return the answer."""
    folder.mkdir()
    device = {"Device Type": 1, "Device Id": 0, "Total Allocated": 0, "Total Reserved": 0}
    events: list[dict[str, Any]] = []
    for n, (address, size) in enumerate(in_trace):
        at = {"pid": 1, "tid": 1, "ts": 10 * n}
        name = OPERATORS[address // 4096 % 3]
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "dur": 8, "args": {}, **at})
        args = {**device, "Addr": address, "Bytes": size, "Ev Idx": n}
        at["ts"] += 4
        events.append(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "args": args,
                **at,
            }
        )
    trace: dict[str, Any] = {"schemaVersion": 1, "distributedInfo": {"rank": 0}}
    if base_ns is not None:
        trace["baseTimeNanoseconds"] = base_ns
    text = json.dumps({**trace, "traceEvents": events})
    (folder / "rank0.json").write_text(text, encoding="utf-8")
    made = [
        {
            "action": "alloc",
            "addr": address,
            "size": size - 12,
            "stream": 0,
            "time_us": BASE_NS // 1000 + 10 * n + 5,
            "frames": [],
        }
        for n, (address, size) in enumerate(in_snapshot)
    ]
    text = json.dumps({"segments": [], "device_traces": [made]})
    (folder / "rank0_snapshot.json").write_text(text, encoding="utf-8")
    with hta_sql.ingest(str(folder), str(folder / "store"), run="job", jobs=1) as store:
        return store.run("snapshot_operators").records()


def by_operator(found: list[dict[str, Any]]) -> dict[tuple[str | None, str | None], int]:
    """Return the number of allocations by operator and by join method."""
    return {(row["operator_name"], row["matched_by"]): row["allocation_count"] for row in found}


def expected(
    made: Sequence[tuple[int, int]], method: str
) -> dict[tuple[str | None, str | None], int]:
    """Return the expected numbers by the addresses."""
    names = [OPERATORS[address // 4096 % 3] for address, _ in made]
    return {(name, method): names.count(name) for name in OPERATORS}


def test_a_shared_clock_joins_by_address_and_time(tmp_path: Path) -> None:
    """If trace and snapshot share a clock, allocations join by address and time."""
    made = allocations()
    found = joined(tmp_path / "job", made, made, BASE_NS)
    assert by_operator(found) == expected(made, "address and time")
    assert {row["match_rate"] for row in found} == {1.0}


def test_without_a_shared_clock_the_order_joins(tmp_path: Path) -> None:
    """The trace begins and ends within the history; rows outside of the trace do not count."""
    made = allocations()
    found = joined(tmp_path / "job", made[8:20], made)
    assert by_operator(found) == expected(made[8:20], "sequence")
    assert {row["match_rate"] for row in found} == {1.0}


def test_a_base_time_of_another_day_is_no_shared_clock(tmp_path: Path) -> None:
    """The clocks do not overlap, so the order decides."""
    made = allocations()
    found = joined(tmp_path / "job", made, made, BASE_NS - 86_400 * 10**9)
    assert by_operator(found) == expected(made, "sequence")


def test_lost_events_of_either_file_shift_the_order(tmp_path: Path) -> None:
    """Allocations lost in the trace have no operator and lower the match rate; all others are right."""
    made = allocations()
    in_trace = made[:9] + made[10:]
    in_snapshot = made[:20] + made[21:]
    found = joined(tmp_path / "job", in_trace, in_snapshot)
    both = made[:9] + made[10:20] + made[21:]
    assert by_operator(found) == {**expected(both, "sequence"), (None, None): 1}
    assert {row["match_rate"] for row in found} == {28 / 29}


def test_equal_sizes_at_one_address_are_told_apart_by_their_neighbors(tmp_path: Path) -> None:
    """An address is used twice in a row with one size, and the trace lost the first of the two."""
    made = allocations()
    in_snapshot = [*made[:10], made[10], *made[10:]]
    found = joined(tmp_path / "job", made, in_snapshot)
    # The first of the two continues the run before it (11 long), the second the run after it (20 long).
    assert by_operator(found) == {**expected(made, "sequence"), (None, None): 1}
    assert {row["match_rate"] for row in found} == {30 / 31}


def test_steps_that_repeat_each_other_are_not_guessed(tmp_path: Path) -> None:
    """The history contains the sequence of the trace twice, so the match is ambiguous."""
    made = allocations(12)
    found = joined(tmp_path / "job", made, [*made, (1 << 30, 512), *made])
    assert by_operator(found) == {(None, None): 25}
    assert {row["match_rate"] for row in found} == {0.0}


def test_a_trace_without_memory_events_joins_by_time_alone(tmp_path: Path) -> None:
    """The innermost operator at the time of the allocation is selected."""
    made = allocations()
    other = [(1 << 40, 512) for _ in made]
    found = joined(tmp_path / "job", other, made, BASE_NS)
    assert {row["matched_by"] for row in found} == {"time"}
    assert {row["operator_name"] for row in found} == {OPERATORS[(1 << 40) // 4096 % 3]}


def test_a_snapshot_without_a_trace_has_no_rows(tmp_path: Path) -> None:
    """Without a trace of the rank there are no operators."""
    snapshot = Path(__file__).parent / "traces" / "snapshots" / "training.json"
    with hta_sql.ingest(str(snapshot), str(tmp_path / "store"), run="job", jobs=1) as store:
        assert store.run("snapshot_operators").records() == []
