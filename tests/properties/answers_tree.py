"""Recompute the analyses of stacks, timelines and stragglers with slow, simple code."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count, pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

from tests.properties.answers_device import PLACE, Row, grouped
from tests.properties.answers_host import every_step, sequences
from tests.properties.naive import Scope, as_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.properties.naive import Item, World


def kernel_sequence_events(world: World, scope: Scope) -> list[Row]:
    """Return the events below each outermost aten call, and the operations that they launched."""
    calls = [root for root, _ in sequences(world, scope, "aten::", 1)]
    hosts = world.hosts(every_step(scope))
    ops = world.ops(every_step(scope))
    rows = []
    for h in hosts:
        lane = (h.run, h.rank, *h.thread)
        before = [r for r in calls if (r.run, r.rank, *r.thread) == lane and r.ts <= h.ts]
        root = max(before, key=lambda r: r.ts, default=None)
        if root and h.end <= root.end:
            if (h.ts, h.end) == (root.ts, root.end) and h.id < root.id:
                continue
            inside = [h, *(op for op in ops if op.launch is h)]
            rows += [
                {"run": i.run, "rank": i.rank, "event_id": i.id, "call_id": root.id} for i in inside
            ]
    return rows


def event_stack(world: World, scope: Scope, event_ids: list[int]) -> list[Row]:
    """Return the chain of ancestors of each selected event."""
    rows = []
    hosts = set(world.hosts(every_step(scope)))
    ops = {op for op in world.ops(every_step(scope)) if op.launch in hosts}
    for item in hosts | ops:
        if item.id in event_ids and item in scope:
            launch = [item.launch, *item.launch.above()] if item.launch else [*item.above()]
            depths = range(len(launch) - 1, -1, -1)
            rows += [
                {"run": item.run, "rank": item.rank, "chosen_event_id": item.id}
                | {"relation": relation, "depth": depth, "event_id": i.id}
                for i, depth, relation in (
                    (item, len(launch), "chosen"),
                    *((a, d, "ancestor") for a, d in zip(launch, depths, strict=True)),
                )
            ]
    return rows


def forward_backward(world: World, scope: Scope) -> list[Row]:
    """Match forward and backward operators by sequence number; these traces have no flow events."""
    found: dict[Item, list[Item]] = {}
    of: dict[Item, Item] = {}
    everything = every_step(scope)
    hosts = [h for h in world.host if h.cat == "cpu_op"]
    for (_, _, number), ops in grouped(
        hosts, lambda h: (h.run, h.rank, h.args.get("Sequence number", -1))
    ).items():
        for b in ops:
            if number >= 0 and b.args.get("Fwd thread id", 0) > 0:
                forward = [f for f in ops if f.args.get("Fwd thread id", 0) == 0 and f.ts < b.ts]
                if forward:
                    of[b] = min(forward, key=lambda f: f.id)
    for b, f in of.items():
        if b in everything and f in scope and all(of.get(a) is not f for a in b.above()):
            found.setdefault(f, []).append(b)
    kernels = [op for op in world.ops(everything) if op.launch]

    def below(items: list[Item]) -> list[Item]:
        return [op for i in items for op in kernels if op.launch and i in op.launch.above()]

    return [
        {"run": f.run, "rank": f.rank, "forward_id": f.id, "backward_count": len(backward)}
        | {"backward_id": min((b.ts, b.id) for b in backward)[1]}
        | {"backward_ns": sum(b.dur for b in backward)}
        | {"forward_kernel_count": len(below([f])), "backward_kernel_count": len(below(backward))}
        | {"backward_kernel_ns": sum(op.dur for op in below(backward))}
        for f, backward in found.items()
    ]


def gpu_timeline(world: World, scope: Scope, resolution_ns: int) -> list[Row]:
    """Merge consecutive operations of a class while the gap between them is short."""
    rows: list[Row] = []
    zero = {
        run: min(o.ts for o in ops)
        for run, ops in grouped(world.ops(scope), lambda o: o.run).items()
    }
    for place, ops in grouped(world.ops(scope), lambda op: op.place).items():
        ops.sort(key=lambda o: (o.ts, o.dur, o.id))
        groups = [[ops[0]]]
        for number, op in enumerate(ops[1:], 1):
            ended = max(o.end for o in ops[:number])
            if op.klass == ops[number - 1].klass and op.ts - ended < resolution_ns:
                groups[-1].append(op)
            else:
                groups.append([op])
        for group in groups:
            longest = max(group, key=lambda o: (o.dur, -o.id))
            rows.append(
                dict(zip(PLACE, place, strict=True))
                | {"start_ns": group[0].ts - zero[place[0]], "name": longest.name}
                | {"end_ns": max(o.end for o in group) - zero[place[0]], "event_id": longest.id}
                | {"class": longest.klass, "op_count": len(group)}
            )
    return rows


def cupti_counters_by_operator(world: World, scope: Scope) -> list[Row]:
    """Return counter ranges with the operators around their launch."""
    rows = []
    calls = [
        h
        for h in world.host
        if re.search("launch.*kernel", h.name.lower()) and "correlation" in h.args
    ]
    ranges = [i for i in world.items if i.cat == "cuda_profiler_range" and scope.has_rank(i)]
    for r in ranges:
        mine = [c for c in calls if (c.run, c.rank) == (r.run, r.rank)]
        same = grouped(mine, lambda c: c.args["correlation"]).values()
        firsts = [min(s, key=lambda c: (len([*c.above()]), c.ts, c.id)) for s in same]
        firsts.sort(key=lambda c: (c.ts, c.id))
        peers = [p for p in ranges if (p.run, p.rank) == (r.run, r.rank)]
        peers.sort(key=lambda p: (p.ts, p.id))
        launch = next(
            (c for c in firsts if c.args["correlation"] == r.args.get("correlation")), None
        )
        if "correlation" not in r.args and len(firsts) == len(peers):
            launch = firsts[peers.index(r)]
        if scope.steps is not None and (launch is None or launch.step not in scope.steps):
            continue
        if launch and launch.in_last and not scope.include_last_profiler_step:
            continue
        stack = [o.name for o in launch.around("cpu_op")[::-1]] if launch else []
        for counter in sorted({*r.args} - {"correlation"}):
            value = r.args[counter]
            rows.append(
                {"run": r.run, "rank": r.rank, "event_id": r.id, "counter": counter}
                | {"value": float(value) if value != "n/a" else None}
                | {"launch_id": launch.id if launch else None}
                | {"op_stack": as_json(stack) if stack else None}
            )
    return rows


def straggler_metric(world: World, scope: Scope) -> list[Row]:
    """Return the calls of the collective whose durations differ most between ranks."""
    rows = []
    ops = [op for op in world.ops(scope) if op.run not in world.with_steps or op.step is not None]
    for run, of_run in grouped(ops, lambda op: op.run).items():
        steps = {s.id: s for s in world.hosts(every_step(scope)) if s.is_step and s.run == run}
        own = {int(s.name.split("#")[1]): s for s in steps.values()}
        marks = [
            s
            for s in steps.values()
            if scope.steps is None or int(s.name.split("#")[1]) in scope.steps
        ]
        hosts = [h for h in world.hosts(scope, "cpu_op") if h.run == run]
        hosts = [h for h in hosts if run not in world.with_steps or h.step is not None]
        seen = [*of_run, *marks, *hosts]
        first, number = min(i.ts for i in seen), max(1, len({s.name for s in marks} if own else {}))
        span = max(i.end for i in seen) - first
        places: dict[Any, list[Item]] = {}
        comm = [op for op in of_run if op.klass == "communication"]
        for key, peers in grouped(
            comm,
            lambda o: (o.rank, o.step, channel(o, comm), o.name),  # noqa: B023 (called in this round)
        ).items():
            for place, op in zip(count(), sorted(peers, key=lambda o: (-o.ts, -o.id))):
                places.setdefault((key[2], key[3], place), []).append(op)
        best = None
        for key, found in places.items():
            spreads, long = [], False
            for _, same in sorted(
                grouped(found, lambda o: o.step).items(), key=lambda s: s[0] or 0
            ):
                n, ns = len(same), [o.dur for o in same]
                if n >= 2:
                    spreads.append(
                        sqrt((n * sum(d * d for d in ns) - sum(ns) ** 2) / (n * (n - 1)))
                    )
                    long |= max(ns) * number >= 0.01 * span
            if spreads:
                rank = (not long, -sum(spreads) / len(spreads), *key)
                best = min(best or (rank, found, long), (rank, found, long), key=lambda b: b[0])
        for op in best[1] if best else []:
            same = [o for o in best[1] if o.step == op.step] if best else []
            rows.append(
                {"run": run, "step": op.step, "rank": op.rank, "event_id": op.id}
                | {"late_ns": op.ts - min(o.ts for o in same)}
                | {"normalized_start": (op.ts - first) / (span / number) if span else None}
                | {"is_long": best is not None and best[2]}
                | {"is_late": sum(o.ts > op.ts for o in same) < 2}
            )
    return rows


def channel(op: Item, peers: list[Item]) -> str:
    """Return the name of a collective's channel: its process group, or else its stream.

    If all ranks have equally many streams, the n-th streams of the ranks form one channel.
    """
    if group := op.args.get("Process Group Name"):
        return f"group {group}"
    if op.place[3] is None:
        return "no stream"
    streams: dict[int, set[int]] = {}
    for peer in peers:
        is_like = peer.name == op.name and "Process Group Name" not in peer.args
        if is_like and peer.place[3] is not None:
            streams.setdefault(peer.rank, set()).add(peer.place[3])
    if len({len(found) for found in streams.values()}) == 1:
        place = sorted(streams[op.rank]).index(op.place[3])
        matched = [sorted(found)[place] for found in streams.values()]
        if min(matched) < max(matched):
            return f"stream {min(matched)} to {max(matched)}"
    return f"stream {op.place[3]}"


def idle_causes(
    world: World, windows: Iterable[tuple[str, int, int, int]]
) -> dict[tuple[str, str], int]:
    """Return the idle time in windows of device activity, by run and cause [ns].

    Args:
        world: All events.
        windows: Run, rank, start and end of each window. Gaps are split at the end of the launch.
    """
    found: dict[tuple[str, str], int] = defaultdict(int)
    of_rank = grouped(world.ops(Scope(include_last_profiler_step=True)), lambda op: op.place[:2])
    for run, rank, low, high in windows:
        ops = [op for op in of_rank.get((run, rank), []) if op.dur]
        inside = [(max(op.ts, low), min(op.end, high)) for op in ops]
        bounds = sorted({low, high} | {t for ts, end in inside if ts < end for t in (ts, end)})
        for ts, following in pairwise(bounds):
            if any(op.ts <= ts < op.end for op in ops):
                continue
            # Operations that start together are ordered as in the sweep: shorter ones first.
            later = [op for op in ops if op.ts > ts]
            after = min(later, key=lambda op: (op.ts, op.dur, op.id), default=None)
            last = after or max(ops, key=lambda op: (op.ts, op.id))
            if last.launch is None:
                found[run, "idle_unknown"] += following - ts
                continue
            launched = following if after is None else min(max(last.launch.end, ts), following)
            found[run, "idle_host"] += launched - ts
            found[run, "idle_queued"] += following - launched
    return dict(found)
