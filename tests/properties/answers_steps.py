"""Recompute the analyses of steps and GPUs from every interval between event boundaries."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.properties.answers_device import Row, grouped
from tests.properties.answers_time import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.naive import Item, Scope, World

ROLES = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "data_loader",
    "cpu_exec",
    "other",
)


class Window(NamedTuple):
    """The time range of a step, extended to the end of the device operations that it launched."""

    run: str
    rank: int
    step: int | None
    low: int
    high: int

    @property
    def length(self) -> int:
        """Return the duration of the window [ns]."""
        return self.high - self.low


def number(step: Item) -> int:
    """Return the number N of ``ProfilerStep#N``."""
    return int(step.name.split("#")[1])


def steps_of(items: list[Item]) -> list[Item]:
    """Return the steps on the host, in order of time."""
    return sorted((i for i in items if i.is_step), key=lambda s: (s.ts, number(s)))


def windows(world: World, scope: Scope) -> Iterator[Window]:
    """Yield consecutive steps, each extended until the operations that it launched have ended."""
    for (run, rank), items in grouped(world.items, lambda i: (i.run, i.rank)).items():
        gpu = [g for g in world.gpu if (g.run, g.rank) == (run, rank)]
        launches = any(op.launch for op in gpu)
        bounds: list[tuple[int, int, int | None, bool]] = []
        for s in steps_of(items):
            ends = [
                op.end
                for op in gpu
                if op.step == number(s)
                and (op.launch or not launches)
                and op.klass != "sync"
                and not op.suspect
            ]
            bounds.append((s.ts, max([s.end, *ends]), number(s), s.in_last))
        if not bounds:
            bounds = [(min(i.ts for i in items), max(i.end for i in items), None, False)]
        until = bounds[0][0]
        for low, high, step, is_last in bounds:
            window = Window(run, rank, step, max(low, until), max(high, until))
            until = window.high
            wanted = scope.steps is None or step in scope.steps
            kept = scope.include_last_profiler_step or not is_last
            if scope.has_rank(items[0]) and wanted and kept:
                yield window


def role(item: Item) -> int:
    """Return the position of an event's role in ROLES; 7 means none."""
    if item.cat == "kernel":
        return {"computation": 0, "memory": 1, "communication": 3}[item.klass]
    if item.is_step:
        return 7
    roles = {"gpu_memcpy": 1, "gpu_memset": 2, "cuda_runtime": 4, "cuda_driver": 4}
    return {**roles, "cpu_op": 6, "user_annotation": 6}.get(item.cat, 7)


def stretches(spans: list[Item], window: Window) -> Iterator[tuple[int, list[Item]]]:
    """Yield each interval between event boundaries in a window: its duration and running events."""
    inside = {t for item in spans for t in (item.ts, item.end) if window.low < t < window.high}
    for low, high in pairwise(sorted({window.low, window.high} | inside)):
        yield high - low, [item for item in spans if item.ts <= low and high <= item.end]


def step_breakdown(world: World, scope: Scope) -> list[Row]:
    """Assign each moment of a step to the first role in ROLES that is active."""
    rows = []
    for window in windows(world, scope):
        spans = [i for i in world.items if (i.run, i.rank) == window[:2] and not i.suspect]
        times = [0] * len(ROLES)
        for length, running in stretches(spans, window):
            times[min(map(role, running), default=7)] += length
        rows.append(
            {"run": window.run, "rank": window.rank, "step": window.step}
            | {"step_ns": window.length}
            | {f"{name}_ns": ns for name, ns in zip(ROLES, times, strict=True)}
        )
    return rows


def gpu_summary(world: World, scope: Scope) -> list[Row]:
    """Return the utilization of each device during the steps of its rank.

    These traces have no launch configurations, so SM efficiency and occupancy are unknown.
    """
    found: dict[tuple[str, int], list[Window]] = defaultdict(list)
    for window in windows(world, scope):
        found[window[:2]].append(window)
    ops = [g for g in world.gpu if g.dur > 0 and not g.suspect and g.klass != "sync"]
    rows = []
    for (run, rank, device), of_device in grouped(ops, lambda op: op.place[:3]).items():
        observed = sum(window.length for window in found[run, rank])
        kernel, busy, summed, unknown = 0, 0, 0, 0
        for window in found[run, rank]:
            for length, running in stretches(of_device, window):
                kernels = [op for op in running if op.kind == "kernel"]
                busy += length if running else 0
                kernel += length if kernels else 0
                summed += length * len(kernels)
                unknown += length * sum("nccl" not in op.name for op in kernels)
        if observed:
            rows.append(
                {"run": run, "rank": rank, "device": device, "observed_ns": observed}
                | {"kernel_ns": kernel, "utilization_pct": share(kernel, observed)}
                | {"busy_pct": share(busy, observed), "sm_efficiency_pct": None}
                | {"sm_known_pct": share(0, summed), "occupancy_pct": None}
                | {"tensor_core_pct": 0.0 if unknown < summed else None}
                | {"tensor_core_unknown_pct": share(unknown, summed)}
            )
    return rows


def quantile(values: list[int], part: float) -> float:
    """Return an interpolated quantile of a list."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def step_time_stats(world: World, scope: Scope) -> list[Row]:
    """Return statistics of the step durations on the host, and the number of slow steps."""
    rows = []
    for (run, rank), items in grouped(world.items, lambda i: (i.run, i.rank)).items():
        steps = [
            s
            for s in steps_of(items)
            if scope.has_rank(s)
            and (scope.steps is None or number(s) in scope.steps)
            and (scope.include_last_profiler_step or not s.in_last)
        ]
        if not steps:
            continue
        lengths = [s.dur for s in steps]
        paces = [b.ts - a.ts for a, b in pairwise(steps)]
        middle = median(lengths)
        scale = max(1.4826 * median(abs(ns - middle) for ns in lengths), 0.01 * middle)
        slow: Any = sum(ns - middle >= 3.5 * scale and ns > middle for ns in lengths)
        rows.append(
            {"run": run, "rank": rank, "step_count": len(steps), "mean_ns": mean(lengths)}
            | {"std_ns": stdev(lengths) if len(steps) > 1 else None}
            | {"min_ns": min(lengths), "median_ns": middle, "max_ns": max(lengths)}
            | {"p90_ns": quantile(lengths, 0.9), "p99_ns": quantile(lengths, 0.99)}
            | {"longest_step": number(max(steps, key=lambda s: (s.dur, -number(s))))}
            | {"slow_count": slow if len(steps) >= 3 else None}
            | {"mean_interval_ns": mean(paces) if paces else None}
            | {"interval_std_ns": stdev(paces) if len(paces) > 1 else None}
        )
    return rows


def kernel_table(world: World, scope: Scope) -> list[Row]:
    """Aggregate kernels by name."""
    rows = []
    kernels = [g for g in world.ops(scope) if g.kind == "kernel"]
    whole = {
        key: sum(k.dur for k in own) for key, own in grouped(kernels, lambda k: k.place[:2]).items()
    }
    keys = grouped(kernels, lambda k: (*k.place[:2], k.name, k.klass))
    for (run, rank, name, klass), own in keys.items():
        ns = [k.dur for k in own]
        rows.append(
            {"run": run, "rank": rank, "name": name, "class": klass}
            | {"kernel_count": len(ns), "sum_ns": sum(ns), "mean_ns": mean(ns)}
            | {"min_ns": min(ns), "max_ns": max(ns), "std_ns": stdev(ns) if len(ns) > 1 else None}
            | {"kernel_pct": share(sum(ns), whole[run, rank])}
            | {"uses_tensor_cores": False if "nccl" in name else None}
            | {"under_1us_count": sum(d < 1000 for d in ns)}
            | {"from_1us_count": sum(1000 <= d < 10_000 for d in ns)}
            | {"from_10us_count": sum(10_000 <= d < 100_000 for d in ns)}
        )
    return rows
