"""Recompute the time analyses from every interval between event boundaries."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

from tests.properties.answers_device import PLACE, Row, grouped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.properties.naive import Item, Scope, World

Stretch = tuple[int, int]
"""Interval from one event boundary to the next [ns]."""

CLASSES = ("computation", "communication", "memory")


def by_class(ops: list[Item]) -> list[set[Stretch]]:
    """Return the intervals in which computation, communication and memory run."""
    stretches = list(pairwise(sorted({t for op in ops for t in (op.ts, op.end)})))
    return [
        {
            (low, high)
            for low, high in stretches
            if any(op.klass == klass and op.ts <= low and high <= op.end for op in ops)
        }
        for klass in CLASSES
    ]


def length(stretches: Iterable[Stretch]) -> int:
    """Return the total duration of intervals [ns]."""
    return sum(high - low for low, high in stretches)


def share(part: float, whole: float) -> float | None:
    """Return a percentage, or None if the whole is empty."""
    return 100 * part / whole if whole else None


def temporal_breakdown(world: World, scope: Scope) -> list[Row]:
    """Assign each instant of a rank to compute, communication, memory or idle time."""
    rows = []
    for (run, rank), ops in grouped(world.ops(scope), lambda op: op.place[:2]).items():
        span = max(op.end for op in ops) - min(op.ts for op in ops)
        compute, communication, memory = by_class(ops)
        parts = {
            "compute": compute,
            "exposed_communication": communication - compute,
            "exposed_memory": memory - compute - communication,
            "non_compute": (communication | memory) - compute,
        }
        times = {name: length(found) for name, found in parts.items()}
        times["idle"] = span - times["compute"] - times["non_compute"]
        left_out = [g for g in world.gpu if g in scope and g.suspect and g.klass != "sync"]
        suspect = [g for g in left_out if g.place[:2] == (run, rank)]
        rows.append(
            {"run": run, "rank": rank, "span_ns": span}
            | {f"{name}_ns": ns for name, ns in times.items()}
            | {f"{name}_pct": share(ns, span) for name, ns in times.items()}
            | {"kernel_time_ns": sum(op.dur for op in ops)}
            | {"suspect_count": len(suspect), "suspect_ns": sum(op.dur for op in suspect)}
        )
    return rows


def comm_comp_overlap(world: World, scope: Scope) -> list[Row]:
    """Return the communication time, and its overlap with computation."""
    rows = []
    for (run, rank), ops in grouped(world.ops(scope), lambda op: op.place[:2]).items():
        compute, communication, _ = by_class(ops)
        whole, hidden = length(communication), length(communication & compute)
        rows.append(
            {"run": run, "rank": rank, "communication_ns": whole, "overlapped_ns": hidden}
            | {"overlap_pct": share(hidden, whole)}
        )
    return rows


def gpu_kernel_types(world: World, scope: Scope) -> list[Row]:
    """Return busy time by the combination of classes that run at the same time."""
    rows = []
    for (run, rank), ops in grouped(world.ops(scope), lambda op: op.place[:2]).items():
        found = by_class(ops)
        running: dict[str, list[Stretch]] = {}
        for stretch in set.union(*found):
            names = (k for k, of in zip(CLASSES, found, strict=True) if stretch in of)
            running.setdefault("+".join(names), []).append(stretch)
        busy = length(set.union(*found))
        rows += [
            {"run": run, "rank": rank, "classes": classes, "busy_ns": length(stretches)}
            | {"busy_pct": 100 * length(stretches) / busy}
            for classes, stretches in running.items()
        ]
    return rows


def gpu_kernels_by_name(world: World, scope: Scope, num_kernels: int) -> list[Row]:
    """Return the kernels with the longest total time in each class, and a row for the others."""
    rows = []
    of_class = grouped(world.ops(scope), lambda op: (*op.place[:2], op.klass))
    for (run, rank, klass), ops in of_class.items():
        names = grouped(ops, lambda op: op.name)
        total = {name: sum(op.dur for op in found) for name, found in names.items()}
        ordered = sorted(names, key=lambda n: (-total[n], n.encode()))
        groups = [(name, names[name], 1) for name in ordered[:num_kernels]]
        if rest := ordered[num_kernels:]:
            groups.append(("others", [op for name in rest for op in names[name]], len(rest)))
        for name, found, count in groups:
            ns = [op.dur for op in found]
            rows.append(
                {"run": run, "rank": rank, "class": klass, "name": name, "kernel_count": len(ns)}
                | {"sum_ns": sum(ns), "min_ns": min(ns), "max_ns": max(ns), "mean_ns": mean(ns)}
                | {"std_ns": stdev(ns) if len(ns) > 1 else None, "median_ns": median(ns)}
                | {"class_pct": share(sum(ns), sum(total.values())), "name_count": count}
                # No compute kernel here matches metadata or a rule.
                | {"unmatched_ns": sum(ns) if klass == "computation" else 0}
            )
    return rows


def cuda_kernel_launch_stats(world: World, scope: Scope) -> list[Row]:
    """Return each kernel with its launch; calls above 5 µs and delays above 3 µs are outliers."""
    rows = []
    for op in world.ops(scope):
        if op.launch and op.kind == "kernel":
            call, delay = op.launch, max(0, op.ts - op.launch.end)
            rows.append(
                dict(zip(PLACE, op.place, strict=True))
                | {"correlation": op.args["correlation"], "launch_id": call.id}
                | {"launch_name": call.name, "event_id": op.id, "name": op.name, "kind": op.kind}
                | {"cpu_dur_ns": call.dur, "gpu_dur_ns": op.dur, "launch_delay_ns": delay}
                | {"is_short_kernel": op.dur < call.dur <= 5000}
                | {"is_runtime_outlier": call.dur > 5000, "is_launch_delay_outlier": delay > 3000}
            )
    return rows


def idle_gaps(world: World, scope: Scope, kernel_wait_below_ns: int) -> list[Row]:
    """Return the idle gaps of each stream, from the latest end so far to the next start."""
    rows = []
    on_streams = [op for op in world.ops(scope) if op.place[3] is not None]
    for place, ops in grouped(on_streams, lambda op: op.place).items():
        ordered = sorted(ops, key=lambda op: (op.ts, op.dur, op.id))
        previous = ordered[0]
        for before, op in pairwise(ordered):
            previous = before if before.end > previous.end else previous
            if op.ts <= previous.end:
                continue
            if op.launch and op.launch.ts > previous.end:
                category = "host_wait"
            else:
                is_short = op.ts - previous.end < kernel_wait_below_ns
                category = "kernel_wait" if is_short else "other"
            rows.append(
                dict(zip(PLACE, place, strict=True))
                | {"ts": previous.end, "dur": op.ts - previous.end, "category": category}
                | {"previous_id": previous.id, "previous_name": previous.name}
                | {"next_id": op.id, "next_name": op.name}
                | {"launch_id": op.launch and op.launch.id, "launch_ts": op.launch and op.launch.ts}
            )
    return rows


def idle_time_breakdown(world: World, scope: Scope, kernel_wait_below_ns: int) -> list[Row]:
    """Return the idle time of each stream by cause."""
    gaps = idle_gaps(world, scope, kernel_wait_below_ns)
    rows = []
    for place in {op.place for op in world.ops(scope) if op.place[3] is not None}:
        own = [gap for gap in gaps if tuple(gap[name] for name in PLACE) == place]
        for category in ("host_wait", "kernel_wait", "other"):
            ns = [gap["dur"] for gap in own if gap["category"] == category]
            rows.append(
                dict(zip(PLACE, place, strict=True))
                | {"category": category, "gap_count": len(ns), "idle_ns": sum(ns)}
                | {"idle_pct": share(sum(ns), sum(gap["dur"] for gap in own))}
            )
    return rows


def idle_time_stats(world: World, scope: Scope, kernel_wait_below_ns: int) -> list[Row]:
    """Return gap statistics by stream and cause."""

    def key(gap: Row) -> tuple[Any, ...]:
        return (*(gap[name] for name in PLACE), gap["category"])

    gaps = idle_gaps(world, scope, kernel_wait_below_ns)
    rows = []
    for found in {key(gap) for gap in gaps}:
        ns = sorted(gap["dur"] for gap in gaps if key(gap) == found)
        rows.append(
            dict(zip((*PLACE, "category"), found, strict=True))
            | {"gap_count": len(ns), "mean_ns": mean(ns), "min_ns": ns[0], "max_ns": ns[-1]}
            | {"std_ns": stdev(ns) if len(ns) > 1 else None}
            | {f"p{q}_ns": between(ns, q / 100) for q in (25, 50, 75)}
        )
    return rows


def between(values: list[int], place: float) -> float:
    """Return an interpolated quantile of sorted values."""
    at = place * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])
