"""Recompute the module tree with slow, simple code."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.properties.answers_stacks import caller, chain, forward_operator, own_times

if TYPE_CHECKING:
    from tests.properties.naive import Item, Scope, World

Row = dict[str, Any]
Path = tuple[str, ...]
Home = tuple[str, int, str]
"""Run, rank and name of a module."""


def is_module(item: Item) -> bool:
    """Return whether an event is a module call."""
    return item.cat == "python_function" and item.name.startswith("nn.Module: ")


def is_gradient(item: Item) -> bool:
    """Return whether an event is an operator that autograd runs in the backward pass."""
    if item.cat != "cpu_op" or item.name.startswith("autograd::engine::"):
        return False
    return item.args.get("Fwd thread id", 0) > 0 or item.name == "torch::autograd::AccumulateGrad"


def innermost(items: list[Item]) -> Item | None:
    """Return the innermost module call or backward operator in a chain of events."""
    return next((item for item in items[::-1] if is_module(item) or is_gradient(item)), None)


class Tree:
    """Finds the path of each module call, and whether the call is a recomputation."""

    def __init__(self, world: World) -> None:
        self._world = world
        calls = [item for item in world.host if is_module(item)]
        self._homes: dict[Home, Path] = {}
        for call in sorted(calls, key=lambda call: call.id):
            if not self.recomputed(call):
                self._homes.setdefault(self._home(call), self.path(call)[:-1])
        self.calls = calls

    @staticmethod
    def _home(call: Item) -> Home:
        return call.run, call.rank, call.name

    def recomputed(self, call: Item) -> bool:
        """Return whether a module call runs inside a backward operator, directly or indirectly."""
        above = innermost(chain(call)[:-1])
        return above is not None and (is_gradient(above) or self.recomputed(above))

    def path(self, call: Item) -> Path:
        """Return the names of the modules around a call, followed by the call's own name."""
        above = innermost(chain(call)[:-1])
        if above is None:
            around: Path = ()
        elif is_module(above):
            around = self.path(above)
        else:
            around = self._homes.get(self._home(call), ())
        return (*around, call.name.removeprefix("nn.Module: "))

    def owner(self, items: list[Item]) -> tuple[Path | None, str]:
        """Return the module path and the pass of an event, given the events around it."""
        decider = innermost(items)
        if decider is None or is_module(decider):
            if decider is None:
                return None, "forward"
            return self.path(decider), "recompute" if self.recomputed(decider) else "forward"
        forward = forward_operator(self._world, decider)
        inside = [item for item in chain(forward) if is_module(item)]
        inside = inside or [item for item in items if is_module(item)]
        return self.path(inside[-1]) if inside else None, "backward"


def modules(world: World, scope: Scope) -> list[Row]:
    """Return the self and total costs of each module in each pass."""
    tree = Tree(world)
    ranks = {(call.run, call.rank) for call in tree.calls}
    remember = {(m.run, m.rank) for m in world.memory}
    parts: dict[tuple[Any, ...], int] = defaultdict(int)

    def count(item: Item, items: list[Item], cost: str, amount: int) -> None:
        if (item.run, item.rank) in ranks:
            path, phase = tree.owner(items)
            parts[item.run, item.rank, path, phase, cost] += amount

    for item, own in own_times(world, scope):
        count(item, chain(item), "host", own)
        if is_module(item):
            phase = "recompute" if tree.recomputed(item) else "forward"
            parts[item.run, item.rank, tree.path(item), phase, "calls"] += 1
    for op in world.ops(scope):
        count(op, chain(caller(world, op)), "device", op.dur)
    for m in world.memory:
        if m in scope and m.args["Bytes"] > 0:
            cost = "device_bytes" if m.args["Device Type"] else "host_bytes"
            count(m, chain(m)[:-1], cost, m.args["Bytes"])

    keys = {
        (run, rank, path and path[:depth])
        for run, rank, path, *_ in parts
        for depth in range(1, len(path or "1") + 1)
    }
    return [_row(parts, key, remembers=key[:2] in remember) for key in keys]


def _row(parts: dict[tuple[Any, ...], int], key: tuple[Any, ...], *, remembers: bool) -> Row:
    run, rank, path = key

    def add(cost: str, *phases: str, inside: bool = True) -> int:
        return sum(
            amount
            for (*where, own, phase, kind), amount in parts.items()
            if where == [run, rank]
            and kind == cost
            and phase in phases
            and (own == path or (inside and path and own and own[: len(path)] == path))
        )

    passes = {"": ("forward",), "backward_": ("backward", "recompute")}
    row: Row = {"run": run, "rank": rank, "path": path and "/".join(path)}
    row["call_count"] = add("calls", "forward", inside=False) if path else None
    row["recompute_count"] = add("calls", "recompute", inside=False) if path else None
    for cost in ("host", "device"):
        row[f"recompute_{cost}_ns"] = add(cost, "recompute")
        for name, phases in passes.items():
            row[f"{name}{cost}_self_ns"] = add(cost, *phases, inside=False)
            row[f"{name}{cost}_total_ns"] = add(cost, *phases)
            allocated = add(f"{cost}_bytes", *phases)
            row[f"{name}{cost}_allocated_bytes"] = allocated if remembers else None
    return row
