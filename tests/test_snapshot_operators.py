"""Tests that allocations in memory snapshots are joined with the operators in a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hta_sql

BASE_NS = 1_700_000_000_000_000_000
OPERATORS = ("aten::mm", "aten::relu", "aten::add")


def allocations(count: int = 30) -> list[tuple[int, int]]:
    """Return (address, block size) pairs; each size occurs twice in a row, each address once."""
    return [(4096 * (n + 1), 512 * (1 + n // 2)) for n in range(count)]


def joined(
    folder: Path,
    in_trace: Sequence[tuple[int, int]],
    in_snapshot: Sequence[tuple[int, int]],
    base_ns: int | None = None,
) -> list[dict[str, Any]]:
    """Ingest a trace and a snapshot with the given allocations; return the joined rows.

    The address of an allocation determines in which of three operators it happens.
    """
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
    """Return the number of allocations by operator and join method."""
    return {(row["operator_name"], row["matched_by"]): row["allocation_count"] for row in found}


def expected(
    made: Sequence[tuple[int, int]], method: str
) -> dict[tuple[str | None, str | None], int]:
    """Return the expected number of allocations by operator, which follows from the addresses."""
    names = [OPERATORS[address // 4096 % 3] for address, _ in made]
    return {(name, method): names.count(name) for name in OPERATORS}


def test_a_shared_clock_joins_by_address_and_time(tmp_path: Path) -> None:
    """If trace and snapshot share a clock, allocations are joined by address and time."""
    made = allocations()
    found = joined(tmp_path / "job", made, made, BASE_NS)
    assert by_operator(found) == expected(made, "address and time")
    assert {row["match_rate"] for row in found} == {1.0}


def test_without_a_shared_clock_the_order_joins(tmp_path: Path) -> None:
    """Without a shared clock, allocations are joined by their order.

    The trace covers only part of the snapshot's history; allocations outside it do not count.
    """
    made = allocations()
    found = joined(tmp_path / "job", made[8:20], made)
    assert by_operator(found) == expected(made[8:20], "sequence")
    assert {row["match_rate"] for row in found} == {1.0}


def test_a_base_time_of_another_day_is_no_shared_clock(tmp_path: Path) -> None:
    """Clocks that are a day apart are not shared, so allocations are joined by their order."""
    made = allocations()
    found = joined(tmp_path / "job", made, made, BASE_NS - 86_400 * 10**9)
    assert by_operator(found) == expected(made, "sequence")


def test_lost_events_of_either_file_shift_the_order(tmp_path: Path) -> None:
    """An allocation that the trace lost has no operator, and all others are matched correctly."""
    made = allocations()
    in_trace = made[:9] + made[10:]
    in_snapshot = made[:20] + made[21:]
    found = joined(tmp_path / "job", in_trace, in_snapshot)
    both = made[:9] + made[10:20] + made[21:]
    assert by_operator(found) == {**expected(both, "sequence"), (None, None): 1}
    assert {row["match_rate"] for row in found} == {28 / 29}


def test_equal_sizes_at_one_address_are_told_apart_by_their_neighbors(tmp_path: Path) -> None:
    """The snapshot has two allocations in a row at one address, one of which the trace lost."""
    made = allocations()
    in_snapshot = [*made[:10], made[10], *made[10:]]
    found = joined(tmp_path / "job", made, in_snapshot)
    # The first of the two continues the 11 allocations before it, the second the 20 after it.
    assert by_operator(found) == {**expected(made, "sequence"), (None, None): 1}
    assert {row["match_rate"] for row in found} == {30 / 31}


def test_steps_that_repeat_each_other_are_not_guessed(tmp_path: Path) -> None:
    """If the history contains the trace's sequence twice, the match is ambiguous."""
    made = allocations(12)
    found = joined(tmp_path / "job", made, [*made, (1 << 30, 512), *made])
    assert by_operator(found) == {(None, None): 25}
    assert {row["match_rate"] for row in found} == {0.0}


def test_a_trace_without_memory_events_joins_by_time_alone(tmp_path: Path) -> None:
    """Without matching memory events, allocations are joined by time to the innermost operator."""
    made = allocations()
    other = [(1 << 40, 512) for _ in made]
    found = joined(tmp_path / "job", other, made, BASE_NS)
    assert {row["matched_by"] for row in found} == {"time"}
    assert {row["operator_name"] for row in found} == {OPERATORS[(1 << 40) // 4096 % 3]}


def test_a_snapshot_without_a_trace_has_no_rows(tmp_path: Path) -> None:
    """Without a trace of the rank, there are no rows."""
    snapshot = Path(__file__).parent / "traces" / "snapshots" / "training.json"
    with hta_sql.ingest(str(snapshot), str(tmp_path / "store"), run="job", jobs=1) as store:
        assert store.run("snapshot_operators").records() == []
