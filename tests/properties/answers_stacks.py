"""Recompute the analyses of stacks and source lines with slow, simple code."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.naive import Item, Scope, World

Row = dict[str, Any]
Path = tuple[str, ...]
Place = tuple[str, int]

SIDES = ("host", "device", "backward_device")


def chain(item: Item | None) -> list[Item]:
    """Return the events that enclose an event, outermost first, followed by the event itself."""
    return [*reversed([*item.above()]), item] if item else []


def named(items: list[Item]) -> Path:
    """Return the names of events, with one common name for all steps."""
    return tuple("ProfilerStep*" if item.is_step else item.name for item in items)


def own_times(world: World, scope: Scope) -> Iterator[tuple[Item, int]]:
    """Yield each host event with its self time."""
    inner: dict[Item, int] = defaultdict(int)
    for item in world.host:
        if item.parent:
            inner[item.parent] += item.dur
    for item in world.hosts(scope):
        yield item, item.dur - inner[item]


def caller(world: World, op: Item) -> Item | None:
    """Return the launch of an operation, or else the operator with its external id."""
    number = op.args.get("External id", 0)
    named_same = [
        item
        for item in world.host
        if item.cat == "cpu_op"
        and (item.run, item.rank) == (op.run, op.rank)
        and item.args.get("External id") == number > 0
    ]
    return op.launch or min(named_same, key=lambda item: item.id, default=None)


def folded_stacks(world: World, scope: Scope) -> list[Row]:
    """Return self times by call stack."""
    rows: dict[tuple[Place, Path], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for item, own in own_times(world, scope):
        cell = rows[(item.run, item.rank), named(chain(item))]
        cell[0] += 1
        cell[1] += own
    for op in world.ops(scope):
        cell = rows[(op.run, op.rank), named(chain(caller(world, op)))]
        cell[2] += 1
        cell[3] += op.dur
    columns = ("call_count", "host_ns", "device_count", "device_ns")
    return [
        {"run": run, "rank": rank, "stack": ";".join(path) if path else None, "depth": len(path)}
        | dict(zip(columns, cell, strict=True))
        for ((run, rank), path), cell in rows.items()
    ]


def forward_of(world: World, op: Item) -> Item | None:
    """Return the forward operator of the innermost backward operator around a launch."""
    for item in chain(op.launch)[::-1]:
        is_op = item.cat == "cpu_op" and item.args.get("Fwd thread id", 0) > 0
        if is_op and not item.name.startswith("autograd::engine::"):
            return forward_operator(world, item)
    return None


def forward_operator(world: World, op: Item) -> Item | None:
    """Return the forward operator of a backward operator, by sequence numbers."""
    number = op.args.get("Sequence number", -1)
    candidates = [
        other
        for other in world.host
        if other.cat == "cpu_op"
        and (other.run, other.rank) == (op.run, op.rank)
        and other.args.get("Sequence number", -1) == number >= 0
        and op.args.get("Fwd thread id", 0) > 0
        and other.args.get("Fwd thread id", 0) == 0
        and other.ts < op.ts
    ]
    return min(candidates, key=lambda other: other.id, default=None)


def source_lines(world: World, scope: Scope) -> list[Row]:
    """Return self time by the innermost Python frame, and total time by each frame on the stack.

    Ranks without frames have no rows.
    """
    selfs: dict[tuple[Place, str | None], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    totals: dict[tuple[Place, str | None], list[int]] = defaultdict(lambda: [0, 0, 0])

    def count(place: Place, items: list[Item], part: int, ns: int) -> None:
        frames = named([item for item in items if item.cat == "python_function"])
        selfs[place, frames[-1] if frames else None][part] += ns
        for frame in set(frames) if frames else (None,):
            totals[place, frame][part] += ns

    for item, own in own_times(world, scope):
        place = item.run, item.rank
        count(place, chain(item), 0, own)
        if item.cat == "python_function":
            selfs[place, item.name][3] += 1
    for op in world.ops(scope):
        count((op.run, op.rank), chain(caller(world, op)), 1, op.dur)
        if forward := forward_of(world, op):
            count((op.run, op.rank), chain(forward), 2, op.dur)
    rows = []
    for ((run, rank), frame), total in totals.items():
        *of_itself, calls = selfs[(run, rank), frame]
        if any(total) or calls:
            row: Row = {"run": run, "rank": rank, "frame": frame}
            row["call_count"] = calls if frame else None
            for side, self_ns, total_ns in zip(SIDES, of_itself, total, strict=True):
                row |= {f"{side}_self_ns": self_ns, f"{side}_total_ns": total_ns}
            rows.append(row)
    with_frames = {(row["run"], row["rank"]) for row in rows if row["frame"]}
    return [row for row in rows if (row["run"], row["rank"]) in with_frames]
