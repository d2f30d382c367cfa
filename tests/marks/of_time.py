"""Expected values and marks in charts of times, kernels, operators and memory."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean

from hta_sql.charts.kernels.summary import MEASURES
from hta_sql.charts.kernels.table import BINS
from tests.marks.rows import (
    MS,
    US,
    Expected,
    Rows,
    boxed,
    by,
    column,
    longest,
    mean_steps,
    parts_of,
    seen,
    total,
)

STEP_PARTS, STEP_ROLES = parts_of("step_accounting"), parts_of("step_breakdown")
HOST_PARTS = parts_of("host_accounting")


def comm_comp_overlap(rows: Rows) -> Expected:
    """Expect overlapped and exposed communication for each rank, as shares and as times."""
    values = {
        "whole": column(rows, "communication_ns", US),
        "overlapped": column(rows, "overlapped_ns", US),
    }
    return values, {"rect": 2 * 2 * len(rows)}


def comparison(rows: Rows) -> Expected:
    """Expect a bar for each side, for each part that differs, and for each change."""
    parts = [row for row in rows if row["level"] == "part" and row["diff_ns"]]
    changes = [row for row in rows if row["level"] == "row" and row["is_change"]]
    return {"diff": column(changes, "diff_ns", US)}, {"rect": 2 + len(parts) + len(changes)}


def kpi_trends(rows: Rows) -> Expected:
    """Expect a point for each known value, and a line and a band for each KPI."""
    known = [row for row in rows if row["kpi_value"] is not None]
    panels = len(by(known, "kpi"))
    marks = {"symbol": len(known), "line": panels, "area": panels}
    return {"kpi_value": column(known, "kpi_value")}, marks


def trace_diff(rows: Rows) -> Expected:
    """Expect a bar for each operation whose duration changed."""
    return {"diff": column(rows, "diff_sum_ns", US)}, {"rect": len(rows)}


def memory_bandwidth_series(rows: Rows) -> Expected:
    """Expect a panel for each rank and kind of copy, scaled to its highest bandwidth."""
    lanes = by(rows, "rank", "name")
    peaks = sorted(max(row["bandwidth_gbps"] for row in lane) for lane in lanes.values())
    return {"peak of value": peaks}, {"area": len(lanes), "line": len(lanes)}


def memory_bandwidth_summary(rows: Rows) -> Expected:
    """Expect a box plot for each rank and kind of copy."""
    pairs = {"min": "min_gbps", "p25": "p25_gbps", "p50": "p50_gbps", "p75": "p75_gbps"}
    pairs |= {"max": "max_gbps", "time_mean": "time_mean_gbps"}
    return boxed(rows, pairs)


def queue_full_time(rows: Rows) -> Expected:
    """Expect a bar for each stream whose queue was full at any time."""
    return {"full_ns": column(rows, "full_ns", MS)}, {"rect": seen(r["full_ns"] for r in rows)}


def queue_length_series(rows: Rows) -> Expected:
    """Expect a panel for each stream, scaled to its longest queue."""
    lanes = by(rows, "rank", "stream")
    peaks = sorted(max(row["queue_length"] for row in lane) for lane in lanes.values())
    return {"peak of value": peaks}, {"area": len(lanes), "line": len(lanes)}


def queue_length_summary(rows: Rows) -> Expected:
    """Expect a box plot for each stream."""
    pairs = {"min": "min_length", "p25": "p25_length", "p50": "p50_length", "p75": "p75_length"}
    pairs |= {"max": "max_length", "time_mean": "time_mean"}
    return boxed(rows, pairs)


def gpu_kernel_types(rows: Rows) -> Expected:
    """Expect a slice for each set of kernel classes that run simultaneously, summed over ranks."""
    parts = sorted(total(part, "busy_ns") / MS for part in by(rows, "classes").values())
    return {"time": parts}, {"arc": len(parts)}


def gpu_kernels_by_name(rows: Rows) -> Expected:
    """Expect a cell for each rank and kernel, for the ten longest kernels of each class."""
    drawn: Rows = []
    for of_class in by(rows, "class").values():
        names = sorted(by(of_class, "name").values(), key=lambda own: -total(own, "sum_ns"))
        drawn += [row for own in names[:10] for row in own]
    return {"time": column(drawn, "sum_ns", MS)}, {"rect": len(drawn)}


def kernels_across_ranks(rows: Rows) -> Expected:
    """Expect a bar for each kernel, and a range line from its minimum to its maximum."""
    pairs = {"time": "mean_rank_ns", "low": "min_rank_ns", "high": "max_rank_ns"}
    marks = {"rect": 3 * len(rows), "rule": len(rows)}
    return {drawn: column(rows, name, MS) for drawn, name in pairs.items()}, marks


def launch_histograms(rows: Rows) -> Expected:
    """Expect a bar for each bin, and a separate bar for the outliers in a bin."""
    outliers = [float(row["outlier_count"]) for row in rows if row["outlier_count"]]
    others = [float(row["launch_count"] - row["outlier_count"]) for row in rows]
    counts = sorted(outliers + [count for count in others if count])
    return {"count": counts}, {"rect": len(counts)}


def aten_op_kernels_and_delay(rows: Rows) -> Expected:
    """Expect bars for both delays of the 20 most frequent kernel sequences."""
    drawn = longest(rows, "call_count", 20)
    launch, queue = column(drawn, "launch_delay_ns", US), column(drawn, "queue_delay_ns", MS)
    return {"time": sorted(launch + queue)}, {"rect": 2 * len(drawn)}


def frequent_kernel_sequences(rows: Rows) -> Expected:
    """Expect a bar for each sequence that shows its number of occurrences."""
    values = {"occurrence_count": column(rows, "occurrence_count")}
    return values | {"time": column(rows, "device_sum_ns", US)}, {"rect": len(rows)}


def idle_causes(rows: Rows) -> Expected:
    """Expect a bar for each of the 20 longest idle causes, summed over ranks.

    A bar stands for one combination of cause, relation, name and call.
    """
    times = [
        total(own, "idle_ns") for own in by(rows, "cause", "relation", "name", "call").values()
    ]
    times = sorted(times)[-20:]
    return {"time": [ns / MS for ns in times]}, {"rect": len(times)}


def ops_by_name(rows: Rows) -> Expected:
    """Expect bars for the 15 longest operations on the host and on the device."""
    drawn = [row for side in by(rows, "side").values() for row in longest(side, "sum_ns", 15)]
    return {"amount": column(drawn, "sum_ns", MS)}, {"rect": len(drawn)}


def operator_table(rows: Rows) -> Expected:
    """Expect a bar for each of the 15 most expensive operators on the device and on the host."""
    values = []
    for side in ("device", "host"):
        name = f"{side}_self_ns"
        costs = [{name: total(own, name)} for own in by(rows, "name").values()]
        most = longest([cost for cost in costs if cost[name]], name, 15)
        values += column(most, name, MS if most[0][name] >= MS else US)
    return {"amount": sorted(values)}, {"rect": len(values)}


def source_lines(rows: Rows) -> Expected:
    """Expect a bar for each source line with self time, on the device and on the host.

    Device time has a separate bar for the backward pass.
    """
    sides = ("device_self_ns", "backward_device_self_ns", "host_self_ns")
    lines = [row for row in rows if row["frame"]]
    times = [row[side] / US for side in sides for row in lines if row[side]]
    return {"amount": sorted(times)}, {"rect": len(times)}


def modules(rows: Rows) -> Expected:
    """Expect a bar for each module with self time, by pass (forward or backward) and by side."""
    sides = ("device_self_ns", "backward_device_self_ns", "host_self_ns", "backward_host_self_ns")
    times = [row[side] / US for side in sides for row in rows if row["path"] and row[side]]
    return {"amount": sorted(times)}, {"rect": len(times)}


def folded_stacks(rows: Rows) -> Expected:
    """Expect a rectangle for each call on the device and the host, sized by its total time."""
    inside: dict[tuple[str, tuple[str, ...]], float] = defaultdict(float)
    for row in rows:
        names = (row["stack"] or "").split(";")
        for side in ("device_ns", "host_ns"):
            for depth in range(1, len(names) + 1):
                inside[side, tuple(names[:depth])] += row[side] / US if row["stack"] else 0
    times = sorted(time for time in inside.values() if time)
    return {"time": times}, {"rect": len(times)}


def operator_categories(rows: Rows) -> Expected:
    """Expect a bar for each phase of each category, averaged over ranks."""
    ranks = len(by(rows, "rank"))
    categories = by(rows, "category").values()
    means = {
        phase: sorted(
            total(own, "device_ns") / ranks / MS
            for own in ([row for row in all_ if row["phase"] == phase] for all_ in categories)
        )
        for phase in {row["phase"] for row in rows}
    }
    return means, {"rect": sum(value > 0 for own in means.values() for value in own)}


def roofline(rows: Rows) -> Expected:
    """Expect a point for each operator with FLOPs and a roofline, and a line for each roof."""
    known = [row for row in rows if row["roofline_ns"] is not None and row["flops"]]
    values = {
        "time": column(known, "device_ns", US),
        "share": sorted(r["peak_pct"] / 100 for r in known),
    }
    return values, {"symbol": len(known), "line": len(by(known, "math_type"))}


def user_annotation_breakdown(rows: Rows) -> Expected:
    """Expect a bar for the mean over ranks, and a range line from the minimum to the maximum."""
    sums = [column(own, "sum_ns", MS) for own in by(rows, "name").values()]
    values = {
        "time": sorted(map(mean, sums)),
        "low": sorted(map(min, sums)),
        "high": sorted(map(max, sums)),
    }
    return values, {"rect": 3 * len(sums), "rule": len(sums)}


def cupti_counters_by_operator(rows: Rows) -> Expected:
    """Expect a bar for each operator that shows its counters weighted by FLOPs."""
    counted = [row for row in rows if row["flop_weight"]]
    operators = by(counted, "bottom_level_op").values()
    flops = [sum(r["value"] * r["flop_weight"] for r in own) for own in operators]
    return {"flops": sorted(flops)}, {"rect": len(flops)}


def potential_stragglers(rows: Rows) -> Expected:
    """Expect a bar for each rank that was among the last at least once."""
    counts = column(rows, "late_count")
    return {"amount": counts}, {"rect": seen(counts)}


def profiler_steps(rows: Rows) -> Expected:
    """Expect a range line from the fastest to the slowest rank for each step, and a mean."""
    steps = [column(own, "dur", MS) for own in by(rows, "step").values()]
    values = {
        "low": sorted(map(min, steps)),
        "mean": sorted(map(mean, steps)),
        "high": sorted(map(max, steps)),
    }
    return values, {"rule": len(steps), "line": 1, "symbol": len(steps)}


def straggler_metric(rows: Rows) -> Expected:
    """Expect a bar for each rank and step, which starts at its delay after the first rank.

    The length of the bar is the duration of the step.
    """
    values = {"start": column(rows, "late_ns", US), "length": column(rows, "dur", US)}
    return values, {"rect": len(rows)}


def gpu_timeline(rows: Rows) -> Expected:
    """Expect a bar for each row."""
    values = {"start": column(rows, "start_ns", MS)}
    return values | {"operations": column(rows, "op_count")}, {"rect": len(rows)}


def timeline(rows: Rows) -> Expected:
    """Expect a bar for each row, with a name if the bar is wide enough."""
    values = {"start": column(rows, "start_ns", MS), "op_count": column(rows, "op_count")}
    wide = max(row["end_ns"] for row in rows) * 40 / 960
    named = seen(row["end_ns"] - row["start_ns"] >= wide for row in rows)
    return values, {"rect": len(rows), "text": named}


def idle_time_breakdown(rows: Rows) -> Expected:
    """Expect a bar for each stream and cause, as shares and as times."""
    causes = {cause: column(own, "idle_ns", MS) for (cause,), own in by(rows, "category").items()}
    return causes, {"rect": 2 * seen(row["idle_ns"] for row in rows)}


def temporal_breakdown(rows: Rows) -> Expected:
    """Expect four parts for each rank, as shares and as times."""
    parts = {
        "whole": "span_ns",
        "computation": "compute_ns",
        "exposed communication": "exposed_communication_ns",
        "exposed memory": "exposed_memory_ns",
        "idle": "idle_ns",
    }
    values = {drawn: column(rows, name, MS) for drawn, name in parts.items()}
    return values, {"rect": 2 * 4 * len(rows)}


def step_accounting(rows: Rows) -> Expected:
    """Expect the parts of each rank's mean step, as shares and as times, with NULL as 0."""
    known = [row | {part: row[part] or 0 for part in STEP_PARTS} for row in rows]
    means = {
        part: [mean(row[part] for row in own) for own in by(known, "rank").values()]
        for part in STEP_PARTS
    }
    # A part that takes no time on any rank is not drawn.
    taken = [part for part in STEP_PARTS if any(row[part] for row in known)]
    values = {STEP_PARTS[part][0]: column(known, part, MS) for part in taken}
    return values, {"rect": 2 * sum(value > 0 for own in means.values() for value in own)}


def step_breakdown(rows: Rows) -> Expected:
    """Expect the time of each role in each rank's mean step, as shares and as times."""
    return mean_steps(rows, STEP_ROLES)


def host_accounting(rows: Rows) -> Expected:
    """Expect the parts of each rank's mean step on the host, as shares and as times."""
    return mean_steps(rows, HOST_PARTS)


def gpu_summary(rows: Rows) -> Expected:
    """Expect a bar and a number for each GPU and each measure that is known.

    The share of kernels with unknown tensor-core use has a pale bar.
    """
    known = [name for name in MEASURES if any(row[name] is not None for row in rows)]
    shares = sorted(row[name] / 100 for row in rows for name in MEASURES if row[name] is not None)
    pale = seen(row["tensor_core_unknown_pct"] for row in rows)
    return {"share": shares}, {"rect": seen(shares) + pale, "text": len(rows) * len(known)}


def kernel_table(rows: Rows) -> Expected:
    """Expect a bar for each of the longest kernels, and a cell for each range of durations.

    A bar shows the time of a kernel, averaged over ranks.
    """
    kernels = sorted(by(rows, "name").values(), key=lambda own: -total(own, "sum_ns"))[:20]
    times = sorted(total(own, "sum_ns") / 2 / US for own in kernels)
    cells = sum(total(own, name) > 0 for own in kernels for name in BINS)
    return {"time": times}, {"rect": len(times) + cells}


def graph_kernels(rows: Rows) -> Expected:
    """Expect a bar for each kernel."""
    return {"amount": column(rows, "sum_ns", US)}, {"rect": len(rows)}


def memory_curve(rows: Rows) -> Expected:
    """Expect a panel for each device, with an area of allocated memory and a point at the peak.

    If reserved memory is known, the panel also has a line.
    """
    peaks = by([row for row in rows if row["is_peak"]], "device_type", "device")
    of_gpu = [row for row in rows if row["device"] == 0]
    values = {
        "top": sorted(row["allocated_bytes"] for own in peaks.values() for row in own),
        "reserved": column(of_gpu, "reserved_bytes", 1e3),
    }
    values["top"] = sorted(v / (1e3 if v > 8 else 1) for v in values["top"])
    return values, {"area": len(peaks), "line": 1, "symbol": len(peaks)}


def live_at_peak(rows: Rows) -> Expected:
    """Expect the parts of each device's peak as shares.

    Below it, expect the memory of the fullest device by allocating operator.
    """
    gpu = [row for row in rows if row["device"] == 0]
    whole = total(gpu, "bytes")
    parts = by(gpu, "state", "category")
    named = {"held before and never freed", "held before"}
    sums: dict[str, float] = defaultdict(float)
    for (state, category), own in parts.items():
        sums[state if state in named else category or "unknown"] += total(own, "bytes")
    values = {
        "share": sorted(part / whole for part in sums.values()),
        "held": sorted(row["bytes"] for row in gpu),
    }
    return values, {"rect": len(sums) + len(gpu)}


def memory_by_operator(rows: Rows) -> Expected:
    """Expect a bar for each operator that allocates memory itself."""
    own = [row for row in rows if row["self_allocated_bytes"] and row["operator_name"]]
    return {"amount": column(own, "self_allocated_bytes", 1e3)}, {"rect": len(own)}


def iterations(rows: Rows) -> Expected:
    """Expect bars for each iteration: its time, its requests and, if known, its context."""
    unit = MS if max(row["device_ns"] for row in rows) >= MS else US
    known = [row for row in rows if row["context_tokens"] is not None]
    values = {
        "device": sorted(3 * column(rows, "device_ns", unit)),
        "context_tokens": column(known, "context_tokens"),
    }
    return values, {"rect": 2 * len(rows) + len(known)}


def serving_kinds(rows: Rows) -> Expected:
    """Expect a bar for each kind of work, split by phase."""
    values = {
        phase: sorted(of["iteration_ns"] / US for of in own)
        for (phase,), own in by(rows, "phase").items()
    }
    return values, {"rect": len(rows)}
