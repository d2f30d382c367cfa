"""Recompute the analyses of memory with slow, simple code."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.properties.answers_device import Row, grouped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.naive import Item, Scope, World

Place = tuple[str, int, int, int]
"""Run, rank, device type and device number."""


def place(event: Item) -> Place:
    """Return the device of a memory event."""
    return event.run, event.rank, event.args["Device Type"], event.args["Device Id"]


def order(event: Item) -> tuple[int, int, int]:
    """Return the sort key of a memory event."""
    return event.ts, event.args["Ev Idx"], event.id


def size(event: Item) -> int:
    """Return the bytes that an event allocates, negative for a free."""
    return int(event.args["Bytes"])


def by_device(world: World, scope: Scope, *, all_steps: bool = False) -> dict[Place, list[Item]]:
    """Return the memory events of each device in order, including those of the last step."""
    return grouped(
        sorted(
            (
                m
                for m in world.memory
                if scope.has_rank(m) and (all_steps or scope.steps is None or m.step in scope.steps)
            ),
            key=order,
        ),
        place,
    )


def head(where: Place) -> Row:
    """Return the columns that identify the device."""
    return dict(zip(("run", "rank", "device_type", "device"), where, strict=True))


def memory_peaks(world: World, scope: Scope) -> list[Row]:
    """Return the peaks of allocated and reserved memory.

    ``peak_event_id`` is the first event at the peak of allocated memory.
    """
    rows = []
    for where, events in by_device(world, scope).items():
        totals = [m.args["Total Allocated"] for m in events]
        reserved = [m.args["Total Reserved"] for m in events]
        top = events[totals.index(max(totals))]
        grown = reserved.index(max(reserved))
        host = where[2] == 0
        rows.append(
            head(where)
            | {"peak_allocated_bytes": max(totals), "peak_ts": top.ts, "peak_event_id": top.id}
            | {"peak_reserved_bytes": None if host else max(reserved)}
            | {"fragmentation_bytes": reserved[grown] - totals[grown] if grown else None}
            | {"before_bytes": totals[0] - size(events[0]), "end_bytes": totals[-1]}
        )
    return rows


@dataclass
class Block:
    """A block of memory, known from its allocation, its free, or both."""

    where: Place
    state: str
    allocation: Item | None
    free: Item | None = None
    gone: Item | None = None

    @property
    def event(self) -> Item:
        """Return the first event of the block."""
        event = self.allocation or self.free
        assert event
        return event


def blocks(events: list[Item]) -> Iterator[Block]:
    """Yield the blocks of a device by following the events at each address."""
    open_at: dict[int, Item] = {}
    seen: set[int] = set()
    for event in events:
        addr = event.args["Addr"]
        before = open_at.pop(addr, None)
        if size(event) < 0 and before and size(before) == -size(event):
            yield Block(place(event), "freed", before, event, event)
        else:
            if before:
                yield Block(place(event), "suspect", before, None, event)
            if size(event) > 0:
                open_at[addr] = event
            else:
                state = "suspect" if addr in seen else "held before"
                yield Block(place(event), state, None, event)
        seen.add(addr)
    for event in open_at.values():
        yield Block(place(event), "held to the end", event)


def operator(event: Item | None) -> str | None:
    """Return the innermost operator around a memory event."""
    return next((o.name for o in event.around("cpu_op")), None) if event else None


def memory_allocations(world: World, scope: Scope) -> list[Row]:
    """Return all blocks, or those that were allocated in the selected steps."""
    return [
        head(where)
        | {
            "addr": block.event.args["Addr"],
            "bytes": abs(size(block.event)),
            "state": block.state,
            "allocation_id": block.allocation.id if block.allocation else None,
            "free_id": block.free.id if block.free else None,
            "operator_name": operator(block.allocation),
        }
        for where, events in by_device(world, scope, all_steps=True).items()
        for block in blocks(events)
        if scope.steps is None or (block.allocation and block.allocation.step in scope.steps)
    ]


def live_at_peak(world: World, scope: Scope) -> list[Row]:
    """Return the memory in use at the peak by state and operator, and the unexplained remainder."""
    rows = []
    everything = by_device(world, scope, all_steps=True)
    for peak in memory_peaks(world, scope):
        where = peak["run"], peak["rank"], peak["device_type"], peak["device"]
        events = everything[where]
        top = next(m for m in events if m.id == peak["peak_event_id"])
        parts: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        first_freed = 0
        for block in blocks(events):
            first_freed -= size(block.free) if block.state == "held before" and block.free else 0
            if block.allocation is None:
                if block.state == "held before" and block.free and order(block.free) > order(top):
                    parts["held before", None].append(-size(block.free))
            elif order(block.allocation) <= order(top) and (
                block.gone is None or order(block.gone) > order(top)
            ):
                state = "freed later" if block.state == "freed" else block.state
                parts[state, operator(block.allocation)].append(size(block.allocation))
        before = events[0].args["Total Allocated"] - size(events[0])
        rest = peak["peak_allocated_bytes"] - sum(map(sum, parts.values()))
        never = max(0, before - first_freed)
        of_device = [
            {"state": state, "operator_name": name, "block_count": len(found), "bytes": sum(found)}
            for (state, name), found in parts.items()
        ]
        for state, left in (("held before and never freed", never), ("lost", rest - never)):
            if left:
                missing = {"operator_name": None, "block_count": None, "bytes": left}
                of_device.append({"state": state, **missing})
        rows += [head(where) | row for row in of_device]
    return rows


def memory_by_operator(world: World, scope: Scope) -> list[Row]:
    """Sum memory events by operator, without and with its callees; the rest is a nameless row."""
    sums: dict[tuple[Place, str | None], list[int]] = defaultdict(lambda: [0] * 6)
    for event in world.memory:
        if not scope.has_rank(event):
            continue
        one = (size(event), max(0, size(event)), int(size(event) > 0))
        ops = event.around("cpu_op")
        for depth, op in enumerate(ops):
            if op in scope:
                row = sums[place(event), op.name]
                row[:] = [
                    *(n + (m if depth == 0 else 0) for n, m in zip(row[:3], one, strict=True)),
                    *(n + m for n, m in zip(row[3:], one, strict=True)),
                ]
        if not ops and event in scope:
            row = sums[place(event), None]
            row[:] = [n + m for n, m in zip(row, one * 2, strict=True)]
    names = ("increase_bytes", "allocated_bytes", "allocation_count")
    calls: dict[Any, int] = defaultdict(int)
    for op in world.hosts(scope, "cpu_op"):
        calls[op.run, op.rank, op.name] += 1
    return [
        head(where)
        | {
            "operator_name": name,
            "call_count": calls.get((*where[:2], name)) if name is not None else None,
        }
        | dict(zip((*(f"self_{of}" for of in names), *names), row, strict=True))
        for (where, name), row in sums.items()
    ]


def memory_leaks(world: World, scope: Scope) -> list[Row]:
    """Return the blocks that are still allocated at the end, by operator."""
    return [
        head(where)
        | {"operator_name": name, "live_count": len(of_name)}
        | {"live_bytes": sum(of_name)}
        for where, events in by_device(world, scope, all_steps=True).items()
        for name, of_name in _open_at_end(events).items()
    ]


def _open_at_end(events: list[Item]) -> dict[str | None, list[int]]:
    sizes: dict[str | None, list[int]] = defaultdict(list)
    for block in blocks(events):
        if block.state == "held to the end" and block.allocation:
            sizes[operator(block.allocation)].append(size(block.allocation))
    return sizes
