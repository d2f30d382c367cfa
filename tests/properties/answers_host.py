"""Recompute the analyses of operators, annotations and calls with slow, simple code."""

from __future__ import annotations

from collections import Counter
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from tests.properties.answers_device import Row, grouped
from tests.properties.naive import DEVICE, as_json

if TYPE_CHECKING:
    from tests.properties.naive import Item, Scope, World


def profiler_steps(world: World, scope: Scope) -> list[Row]:
    """Return steps with the device operations that they launched.

    Operations without a launch are counted separately, unless their rank has no launches at all.
    """
    ops = world.ops(scope)
    launching = {(op.run, op.rank) for op in world.gpu if op.launch}
    rows = []
    for s in (h for h in world.host if h.is_step):
        number = int(s.name.split("#")[1])
        inside = [op for op in ops if op.place[:2] == (s.run, s.rank) and op.step == number]
        own = [op for op in inside if op.launch or (s.run, s.rank) not in launching]
        other = [op for op in inside if op not in own]
        wanted = scope.steps is None or number in scope.steps
        if scope.has_rank(s) and wanted and (scope.include_last_profiler_step or not s.in_last):
            rows.append(
                {"run": s.run, "rank": s.rank, "step": number, "event_id": s.id, "ts": s.ts}
                | {"gpu_op_count": len(own), "gpu_sum_ns": sum(op.dur for op in own)}
                | {"unlaunched_op_count": len(other)}
                | {"unlaunched_busy_ns": sum(op.dur for op in other)}
            )
    return rows


def aten_op_kernels_and_delay(world: World, scope: Scope) -> list[Row]:
    """Return the kernel sequences below the innermost aten operator around each launch."""
    calls: dict[Item, list[Item]] = {}
    for op in world.ops(scope):
        if op.launch and op.kind == "kernel":
            names = [h for h in op.launch.around("cpu_op") if h.name.startswith("aten::")]
            if names:
                calls.setdefault(names[0], []).append(op)
    sequences: dict[Any, list[tuple[Item, list[Item]]]] = {}
    for call, ops in calls.items():
        ops.sort(key=lambda o: (o.launch.ts, o.launch.id, o.ts, o.id) if o.launch else ())
        text = " -> ".join(op.name for op in ops)
        key = (call.run, call.rank, call.name, text, len(ops))
        sequences.setdefault(key, []).append((call, ops))
    columns = ("run", "rank", "operator_name", "kernel_sequence", "kernel_count")
    return [
        dict(zip(columns, key, strict=True))
        | {
            "call_count": len(found),
            "launch_delay_ns": mean(o[0].launch.ts - c.ts for c, o in found if o[0].launch),
            "queue_delay_ns": mean(o[0].ts - o[0].launch.ts for _, o in found if o[0].launch),
            "host_sum_ns": sum(c.dur for c, _ in found),
            "device_sum_ns": sum(op.dur for _, ops in found for op in ops),
        }
        for key, found in sequences.items()
    ]


def user_annotation_breakdown(
    world: World, scope: Scope, *, use_gpu_annotation: bool, num_annotations: int
) -> list[Row]:
    """Return the annotations with the longest total time, and one row for the others."""
    cat = "gpu_user_annotation" if use_gpu_annotation else "user_annotation"
    ranges = [i for i in world.items if i.cat == cat and i in scope]
    rows = []
    for (run, rank), found in grouped(ranges, lambda a: (a.run, a.rank)).items():
        names = grouped(found, lambda a: a.name)
        ordered = sorted(names, key=lambda n: (-sum(a.dur for a in names[n]), n.encode()))
        groups = [(name, names[name], 1) for name in ordered[:num_annotations]]
        if rest := ordered[num_annotations:]:
            groups.append(("others", [a for n in rest for a in names[n]], len(rest)))
        for name, spans, count in groups:
            ns = [a.dur for a in spans]
            rows.append(
                {"run": run, "rank": rank, "name": name, "annotation_count": len(ns)}
                | {"sum_ns": sum(ns), "min_ns": min(ns), "max_ns": max(ns), "mean_ns": mean(ns)}
                | {"std_ns": stdev(ns) if len(ns) > 1 else None, "name_count": count}
            )
    return rows


def gpu_kernels_with_user_annotations(world: World, scope: Scope) -> list[Row]:
    """Return each operation with the annotations around its launch, or else those on its stream."""
    rows = []
    for op in world.ops(scope):
        by_launch = op.launch.around("user_annotation")[::-1] if op.launch else []
        by_span = [
            a
            for a in world.items
            if a.cat == "gpu_user_annotation" and (a.run, a.rank, *a.thread) == op.place
            if a.ts <= op.ts and op.end <= a.end
        ]
        by_span.sort(key=lambda a: (a.ts, -a.dur, a.id))
        path = by_launch or by_span
        rows.append(
            {"run": op.run, "rank": op.rank, "event_id": op.id, "start_ns": op.ts}
            | {"annotation_id": path[-1].id if path else None}
            | {"annotation_path": " / ".join(a.name for a in path) if path else None}
            | {"matched_by": ("launch" if by_launch else "span") if path else None}
        )
    return rows


def all_ops(world: World, scope: Scope) -> list[tuple[Item, str, str]]:
    """Return host events and device activity, each with its side (host or device) and category."""
    ops = [(h, "host", h.cat) for h in world.hosts(scope)]
    gpu = [g for g in world.gpu if g in scope and not g.suspect]
    return ops + [(g, "device", g.cat) for g in gpu if scope.steps is None or g.launch]


def ops_by_name(
    world: World, scope: Scope, *, by_shapes: bool = False, by_step_number: bool = True
) -> list[Row]:
    """Count and sum operations by name, optionally also by shapes."""
    totals: dict[Any, list[int]] = {}
    for item, side, category in all_ops(world, scope):
        dims = item.args.get("Input Dims") if by_shapes else None
        shapes = None if dims is None else as_json(dims)
        name = item.name
        if not by_step_number and name.startswith("ProfilerStep#"):
            name = "ProfilerStep"
        totals.setdefault((item.run, side, category, name, shapes), []).append(item.dur)
    return [
        dict(zip(("run", "side", "category", "name", "shapes"), key, strict=True))
        | {"op_count": len(ns), "sum_ns": sum(ns), "min_ns": min(ns), "max_ns": max(ns)}
        for key, ns in totals.items()
    ]


def trace_diff(
    world: World, control: Scope, test: Scope, *, by_step_number: bool = False
) -> list[Row]:
    """Return the difference between the operations of the test and the control, by name."""
    sides = []
    for scope in (control, test):
        rows = ops_by_name(world, scope, by_step_number=by_step_number)
        sides.append({(r["side"], r["category"], r["name"]): r for r in rows})
    none = {"op_count": 0, "sum_ns": 0}
    return [
        dict(zip(("side", "category", "name"), key, strict=True))
        | {"control_count": sides[0].get(key, none)["op_count"]}
        | {"test_count": sides[1].get(key, none)["op_count"]}
        | {"diff_sum_ns": sides[1].get(key, none)["sum_ns"] - sides[0].get(key, none)["sum_ns"]}
        for key in {**sides[0], **sides[1]}
    ]


def sequences(world: World, scope: Scope, part: str, least: int) -> list[tuple[Item, list[Item]]]:
    """Return outermost calls whose name contains ``part``, with the operations they launched."""
    found: dict[Item, list[Item]] = {}
    named = [h for h in world.hosts(scope) if part in h.name]
    order = {h: (h.ts, -h.dur, h.id) for h in named}
    lane = {h: (h.run, h.rank, *h.thread) for h in world.host}
    roots = [
        h
        for h in named
        if not any(lane[o] == lane[h] and order[o] < order[h] and o.end >= h.end for o in named)
    ]
    for op in world.ops(every_step(scope)):
        if call := op.launch:
            before = [r for r in roots if lane[r] == lane[call] and r.ts <= call.ts]
            root = max(before, key=lambda r: r.ts, default=None)
            if root and call.end <= root.end:
                found.setdefault(root, []).append(op)
    return [
        (root, sorted(ops, key=lambda o: (o.ts, o.id)))
        for root, ops in found.items()
        if len(ops) >= least
    ]


def every_step(scope: Scope) -> Scope:
    """Return a copy of the scope that selects every step."""
    return type(scope)(scope.runs, scope.ranks, None, scope.include_last_profiler_step)


def frequent_kernel_sequences(world: World, scope: Scope) -> list[Row]:
    """Count the occurrences of each kernel sequence below each operator."""
    groups: dict[Any, list[tuple[Item, list[Item]]]] = {}
    for root, ops in sequences(world, scope, "aten::", 2):
        text = "|".join([root.name, *(op.name for op in ops)])
        groups.setdefault((root.run, root.rank, root.name, text, len(ops)), []).append((root, ops))
    places: Counter[tuple[str, int]] = Counter()
    rows = []
    for key in sorted(groups, key=lambda k: (-len(groups[k]), k[3].encode(), k[2].encode(), k[4])):
        places[key[:2]] += 1
        calls = groups[key]
        rows.append(
            dict(zip(("run", "rank", "name", "pattern", "kernel_count"), key, strict=True))
            | {"sequence_id": places[key[:2]], "occurrence_count": len(calls)}
            | {"device_sum_ns": sum(op.dur for _, ops in calls for op in ops)}
            | {"host_sum_ns": sum(root.dur for root, _ in calls)}
            | {"first_event_id": min((r.ts, r.id) for r, _ in calls)[1]}
        )
    return rows


def call_stack(world: World, scope: Scope) -> list[Row]:
    """Return the parent of each event, and the kernels that were launched below it."""
    rows = []
    all_steps = every_step(scope)
    ops = [op for op in world.ops(all_steps) if op.launch and op.launch in all_steps]
    for h in world.hosts(scope):
        below = [op for op in ops if op.launch is h or (op.launch and h in op.launch.above())]
        rows.append(
            {"run": h.run, "rank": h.rank, "event_id": h.id, "depth": len(list(h.above()))}
            | {"parent_id": h.parent.id if h.parent else None, "kernel_count": len(below)}
            | {"kernel_ns": sum(op.dur for op in below)}
            | {"first_kernel_ts": min((op.ts for op in below), default=None)}
            | {"last_kernel_end_ts": max((op.end for op in below), default=None)}
        )
    rows += [
        {"run": op.run, "rank": op.rank, "event_id": op.id}
        | {"depth": len(list(op.launch.above())) + 1, "parent_id": op.launch.id}
        | {"kernel_count": 1, "kernel_ns": op.dur}
        | {"first_kernel_ts": op.ts, "last_kernel_end_ts": op.end}
        for op in ops
        if op in scope and op.launch
    ]
    return rows


def trace_events(world: World, scope: Scope) -> list[Row]:
    """Return every event with a duration."""
    firsts: dict[Any, int] = {}
    for g in sorted(world.gpu, key=lambda g: (g.ts, g.id)):
        firsts.setdefault((g.run, g.rank, g.args.get("correlation")), g.id)
    rows = []
    host = set(world.host)
    for i in world.items:
        has_step = i.cat in DEVICE or i.cat == "gpu_user_annotation" or i in host
        step = i.step if has_step else None
        if (
            i.cat == "Trace"
            or not scope.has_rank(i)
            or (scope.steps is not None and step not in scope.steps)
        ):
            continue
        if not scope.include_last_profiler_step and i.in_last:
            continue
        known = i in host or i.cat in DEVICE
        correlation = i.args.get("correlation") if known else None
        link = i.launch.id if i.launch else None
        if i.cat in ("cuda_runtime", "cuda_driver"):
            link = firsts.get((i.run, i.rank, correlation))
        rows.append(
            {"run": i.run, "rank": i.rank, "event_id": i.id, "category": i.cat, "name": i.name}
            | {"ts": i.ts, "dur": i.dur, "step": step, "correlation": correlation}
            | {"linked_event_id": link}
        )
    return rows
