"""Recompute the analyses of device activity with slow, simple code."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tests.properties.naive import Item, Scope, World

Row = dict[str, Any]
PLACE = ("run", "rank", "device", "stream")


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> dict[Any, list[Item]]:
    """Group items by the value of a key function."""
    groups: dict[Any, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def queue_length_series(world: World, scope: Scope) -> list[Row]:
    """Return the queue length over time: operations launched but not yet started."""
    rows = []
    launched = [op for op in world.ops(scope) if op.launch]
    for place, ops in grouped(launched, lambda op: op.place).items():
        spans = [(min(op.launch.ts, op.ts), op.ts, op) for op in ops if op.launch]
        points: list[Row] = []
        length = 0
        for ts in sorted({t for low, high, _ in spans for t in (low, high)}):
            now = sum(low <= ts < high for low, high, _ in spans)
            if now != length:
                came = [op.launch.id for low, _, op in spans if low == ts and op.launch]
                went = [op.id for _, high, op in spans if high == ts]
                point = {
                    "ts": ts,
                    "queue_length": now,
                    "event_id": max(came if now > length else went),
                }
                points.append(dict(zip(PLACE, place, strict=True)) | point)
            length = now
        for point, following in zip(points, [*points[1:], None], strict=False):
            rows.append(point | {"dur": following["ts"] - point["ts"] if following else None})
    return rows


def queue_length_summary(world: World, scope: Scope) -> list[Row]:
    """Summarize the queue length series of each stream."""
    rows = []
    series = queue_length_series(world, scope)
    for place, ops in grouped(world.ops(scope), lambda op: op.place).items():
        points = [p for p in series if tuple(p[n] for n in PLACE) == place]
        lengths = [p["queue_length"] for p in points]
        span = sum(p["dur"] or 0 for p in points)
        rows.append(
            dict(zip(PLACE, place, strict=True))
            | {
                "op_count": sum(op.launch is not None for op in ops),
                "unlinked_count": sum(op.launch is None for op in ops),
                "point_count": len(points),
                "mean_length": mean(lengths) if points else None,
                "std_length": stdev(lengths) if len(points) > 1 else None,
                "p50_length": median(lengths) if points else None,
                "max_length": max(lengths, default=None),
                "time_mean": sum(p["queue_length"] * (p["dur"] or 0) for p in points) / span
                if span
                else None,
                "waiting_ns": sum(p["dur"] or 0 for p in points if p["queue_length"]),
                "span_ns": span,
            }
        )
    return rows


def queue_full_time(world: World, scope: Scope, max_queue_length: int) -> list[Row]:
    """Return how long, and how often without a break, each queue is at the maximum length."""
    rows = []
    series = queue_length_series(world, scope)
    for place in {tuple(p[n] for n in PLACE) for p in series}:
        points = [p for p in series if tuple(p[n] for n in PLACE) == place]
        full = [p for p in points if p["queue_length"] >= max_queue_length]
        breaks = [p["queue_length"] < max_queue_length for p in points]
        stretches = sum(a and not b for a, b in pairwise([True, *breaks]))
        seen = world.ops(scope) + world.hosts(scope, "cpu_op", "cuda_runtime", "cuda_driver")
        seen = [item for item in seen if (item.run, item.rank) == place[:2]]
        span = max(i.end for i in seen) - min(i.ts for i in seen)
        total = sum(p["dur"] or 0 for p in full)
        rows.append(
            dict(zip(PLACE, place, strict=True))
            | {"full_ns": total, "full_pct": 100 * total / span if span else None}
            | {"full_count": stretches, "max_length": max(p["queue_length"] for p in points)}
        )
    return rows


def copy_kind(op: Item) -> str:
    """Return the direction of a copy."""
    if op.kind == "memset":
        return "Memset"
    known = {"CopyHostToDevice": "HtoD", "MemcpyDtoH": "DtoH", "Memcpy ?": "Unknown"}
    return "Memcpy " + known.get(op.name, op.name.split()[min(1, len(op.name.split()) - 1)])


def copies(world: World, scope: Scope) -> dict[Any, list[tuple[int, int, Item]]]:
    """Return start and end of each copy by rank, device and kind."""
    ops = [op for op in world.ops(scope) if op.klass == "memory"]
    return {
        key: [(op.ts, op.ts + (op.dur or 1000), op) for op in found]
        for key, found in grouped(ops, lambda op: (*op.place[:3], copy_kind(op))).items()
    }


def memory_bandwidth_series(world: World, scope: Scope) -> list[Row]:
    """Return the summed bandwidth of the running copies over time."""
    rows = []
    for key, spans in copies(world, scope).items():
        values: list[tuple[int, tuple[Any, ...]]] = []
        for ts in sorted({t for low, high, _ in spans for t in (low, high)}):
            running = [(op, high - low) for low, high, op in spans if low <= ts < high]
            recorded = [
                r for op, _ in running if (r := op.args.get("memory bandwidth (GB/s)")) is not None
            ]
            computed = [
                op.args["bytes"] * 10**9 // n / 1e9 for op, n in running if "bytes" in op.args
            ]
            value = (
                len(running),
                sum(recorded) if recorded or not running else None,
                sum(computed) if computed or not running else None,
            )
            if not values or values[-1][1] != value:
                values.append((ts, value))
        for (ts, value), following in zip(values, [*values[1:], None], strict=False):
            rows.append(
                dict(zip((*PLACE[:3], "name"), key, strict=True))
                | {"ts": ts, "dur": following[0] - ts if following else None}
                | dict(
                    zip(("running_count", "bandwidth_gbps", "computed_gbps"), value, strict=True)
                )
            )
    return rows


def memory_bandwidth_summary(world: World, scope: Scope) -> list[Row]:
    """Summarize the bandwidth series of each kind of copy."""
    rows = []
    series = memory_bandwidth_series(world, scope)
    for key, spans in copies(world, scope).items():
        points = [p for p in series if (*(p[n] for n in PLACE[:3]), p["name"]) == key]
        busy = [p for p in points if p["running_count"]]
        runs_of_value = [
            p["bandwidth_gbps"] or 0
            for before, p in zip([{}, *points], points, strict=False)
            if (p["bandwidth_gbps"] or 0) > 0
            and p["bandwidth_gbps"] != before.get("bandwidth_gbps")
        ]
        known = [p for p in busy if p["bandwidth_gbps"] is not None]
        size = [op.args["bytes"] for _, _, op in spans if "bytes" in op.args]
        time = sum(p["dur"] for p in known)
        rows.append(
            dict(zip((*PLACE[:3], "name"), key, strict=True))
            | {
                "copy_count": len(spans),
                "zero_count": sum(op.dur == 0 for _, _, op in spans),
                "total_bytes": sum(size) if size else None,
                "busy_ns": sum(p["dur"] for p in busy),
                "point_count": len(runs_of_value),
                "mean_gbps": mean(runs_of_value) if runs_of_value else None,
                "std_gbps": stdev(runs_of_value) if len(runs_of_value) > 1 else None,
                "p50_gbps": median(runs_of_value) if runs_of_value else None,
                "max_gbps": max(runs_of_value, default=None),
                "time_mean_gbps": sum(p["bandwidth_gbps"] * p["dur"] for p in known) / time
                if time
                else None,
            }
        )
    return rows


def kernels_across_ranks(world: World, scope: Scope, num_kernels: int) -> list[Row]:
    """Compare the total time of each kernel across ranks; a rank that never ran it counts as 0."""
    rows = []
    for run, ops in grouped(world.ops(scope), lambda op: op.run).items():
        active = {op.rank for op in ops}
        for klass, of_class in grouped(ops, lambda op: op.klass).items():
            names = grouped(of_class, lambda op: op.name)
            total = {name: sum(op.dur for op in found) for name, found in names.items()}
            ordered = sorted(total, key=lambda n: (-total[n], n.encode()))[:num_kernels]
            for place, name in enumerate(ordered, 1):
                ns = {r: sum(op.dur for op in names[name] if op.rank == r) for r in active}
                rows.append(
                    {
                        "run": run,
                        "class": klass,
                        "position": place,
                        "name": name,
                        "rank_count": len(active),
                        "kernel_count": len(names[name]),
                        "sum_ns": total[name],
                        "class_pct": 100 * total[name] / s if (s := sum(total.values())) else None,
                        "mean_rank_ns": mean(ns.values()),
                        "min_rank_ns": min(ns.values()),
                        "min_rank": min(active, key=lambda r: (ns[r], r)),
                        "max_rank": min(active, key=lambda r: (-ns[r], r)),
                        "spread_pct": 100
                        * (max(ns.values()) - min(ns.values()))
                        / mean(ns.values())
                        if total[name]
                        else None,
                    }
                )
    return rows


def launch_histograms(world: World, scope: Scope) -> list[Row]:
    """Count launches in bins of kernel duration, call duration and launch delay."""
    edges = [0, 1, 2, 3, 5, 7, *(d * 10**e for e in range(17) for d in (10, 15, 20, 30, 50, 70))]
    bins: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for op in world.ops(scope):
        if call := op.launch:
            delay = max(0, op.ts - call.end)
            for measure, ns, outlier in (
                ("kernel_duration", op.dur, op.dur < call.dur <= 5000),
                ("call_duration", call.dur, call.dur > 5000),
                ("launch_delay", delay, delay > 3000),
            ):
                bins[op.run, measure, max(e for e in edges if e <= ns)].append(outlier)
    return [
        {"run": run, "measure": measure, "low_ns": low}
        | {"launch_count": len(found), "outlier_count": sum(found)}
        for (run, measure, low), found in bins.items()
    ]
