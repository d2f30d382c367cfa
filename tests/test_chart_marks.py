"""Every figure shows what its result holds: marks are counted, drawn numbers are compared."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql import charts
from hta_sql.charts.gpu_views import BINS, MEASURES, STEP_ROLES
from hta_sql.charts.pipeline import STAGE_PARTS
from hta_sql.charts.waits import STEP_PARTS
from hta_sql.synthetic import JobSpec, write_job
from tests.conftest import TRACES
from tests.drawn_marks import drawn_rows, visible_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from hta_sql.store.trace_store import TraceStore

Rows = list[dict[str, Any]]

MS, US = 1e6, 1e3


def two_ranks(folder: Path, name: str) -> TraceStore:
    """Ingest a pair of traces."""
    traces = {rank: str(TRACES / f"{name}_{rank}.json") for rank in (0, 1)}
    return hta_sql.ingest(traces, folder / f"{name}.store", run="run")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TraceStore]]:
    """A simulated job of two ranks, and traces for what it does not have."""
    folder = tmp_path_factory.mktemp("marks")
    job = write_job(folder / "traces", JobSpec(ranks=2, steps=3, layers=2))
    sequences = str(TRACES / "annotated_operators.json")
    pair = folder / "pair.store"
    hta_sql.ingest({0: sequences}, pair, run="base").close()
    event = {"ph": "X", "cat": "cuda_profiler_range", "name": "k", "pid": 0, "tid": 0}
    event |= {"ts": 0, "dur": 5, "args": {"l2__hit_rate.pct": 98.5}}
    (folder / "hits.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    with (
        hta_sql.ingest(job.files[0].parent, folder / "job.store", run="job") as of_job,
        hta_sql.ingest({0: str(TRACES / "comm_hidden_and_exposed.json")}, pair, run="test") as two,
        hta_sql.ingest({0: sequences}, folder / "sequences.store", run="run") as few,
        hta_sql.ingest(
            {0: str(TRACES / "cupti_more_ranges.json")}, folder / "cupti.store", run="run"
        ) as counters,
        hta_sql.ingest({0: str(folder / "hits.json")}, folder / "hits.store", run="run") as hits,
        two_ranks(folder, "experts") as experts,
        two_ranks(folder, "sends") as sends,
        hta_sql.ingest({0: str(TRACES / "experts_cut.json")}, folder / "cut.store", run="r") as cut,
        hta_sql.ingest(ranks_of("pipeline", 2), folder / "pipe.store", run="run") as pipeline,
        hta_sql.ingest(ranks_of("overview", 4), folder / "over.store", run="run") as overview,
        hta_sql.ingest(
            {0: str(TRACES / "three_passes.json")}, folder / "passes.store", run="run"
        ) as passes,
        hta_sql.ingest({0: str(TRACES / "blocking.json")}, folder / "b.store", run="r") as blocks,
        hta_sql.ingest({0: str(TRACES / "gpu_views.json")}, folder / "v.store", run="r") as views,
        hta_sql.ingest({0: str(TRACES / "memory_ends.json")}, folder / "e.store", run="r") as ends,
        hta_sql.ingest(
            {0: str(TRACES / "memory_of_training.json")}, folder / "m.store", run="r"
        ) as memory,
        hta_sql.ingest(
            {0: str(TRACES / "operator_kinds.json")}, folder / "kinds.store", run="r"
        ) as kinds,
        hta_sql.ingest(
            {0: str(TRACES / "python_frames.json")}, folder / "f.store", run="r"
        ) as frames,
    ):
        of_traces = {"pair": two, "sequences": few, "cupti": counters, "hits": hits}
        of_traces |= {"experts": experts, "sends": sends, "cut": cut}
        of_traces |= {
            "pipeline": pipeline,
            "overview": overview,
            "passes": passes,
            "blocking": blocks,
            "views": views,
            "ends": ends,
            "memory": memory,
            "kinds": kinds,
            "frames": frames,
        }
        yield {"job": of_job, **of_traces}


def ranks_of(name: str, count: int) -> dict[int, str]:
    """The traces of a job, one a rank."""
    return {rank: str(TRACES / f"{name}_{rank}.json") for rank in range(count)}


def longest(rows: Rows, column: str, top: int) -> Rows:
    """The rows with the highest values."""
    return sorted(rows, key=lambda row: -row[column])[:top]


def by(rows: Rows, *columns: str) -> dict[Any, Rows]:
    """Rows by what tells them apart."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def column(rows: Iterable[dict[str, Any]], name: str, unit: float = 1) -> list[float]:
    """The values of a column, in order of size."""
    return sorted(row[name] / unit for row in rows)


def total(rows: Rows, name: str) -> float:
    """The sum of a column."""
    return float(sum(row[name] for row in rows))


def apart(rows: Rows, low: str, high: str, widest: str) -> int:
    """Lines and boxes that have a length on an axis up to the highest of some values."""
    least = 1e-4 * max(row[widest] for row in rows)
    return sum(row[high] - row[low] > least for row in rows)


def seen(values: Iterable[float]) -> int:
    """Bars that have a length."""
    return sum(value != 0 for value in values)


Expected = tuple[dict[str, list[float]], dict[str, int]]
"""Drawn column ─▶ its values, in order of size; kind of mark ─▶ how many are seen."""


def comm_comp_overlap(rows: Rows) -> Expected:
    """Two parts a rank, as shares and as times."""
    values = {
        "whole": column(rows, "communication_ns", US),
        "hidden": column(rows, "overlapped_ns", US),
    }
    return values, {"rect": 2 * 2 * len(rows)}


def trace_diff(rows: Rows) -> Expected:
    """A bar for each operation that lasts longer or shorter."""
    return {"diff": column(rows, "diff_sum_ns", US)}, {"rect": len(rows)}


def memory_bandwidth_series(rows: Rows) -> Expected:
    """A panel a rank and kind of copy, as high as its highest bandwidth."""
    lanes = by(rows, "rank", "name")
    peaks = sorted(max(row["bandwidth_gbps"] for row in lane) for lane in lanes.values())
    return {"peak of value": peaks}, {"area": len(lanes), "line": len(lanes)}


def memory_bandwidth_summary(rows: Rows) -> Expected:
    """A box a rank and kind of copy: line, quartiles that differ, median, mean over time."""
    pairs = {"min": "min_gbps", "p25": "p25_gbps", "p50": "p50_gbps", "p75": "p75_gbps"}
    pairs |= {"max": "max_gbps", "time_mean": "time_mean_gbps"}
    boxes = len(rows) + apart(rows, "p25_gbps", "p75_gbps", "max_gbps")
    lines = apart(rows, "min_gbps", "max_gbps", "max_gbps")
    marks = {"rule": lines, "rect": boxes, "symbol": len(rows)}
    return {drawn: column(rows, name) for drawn, name in pairs.items()}, marks


def queue_full_time(rows: Rows) -> Expected:
    """A bar a stream that was full at some time."""
    return {"time": column(rows, "full_ns", MS)}, {"rect": seen(r["full_ns"] for r in rows)}


def queue_length_series(rows: Rows) -> Expected:
    """A panel a stream, as high as its longest queue."""
    lanes = by(rows, "rank", "stream")
    peaks = sorted(max(row["queue_length"] for row in lane) for lane in lanes.values())
    return {"peak of value": peaks}, {"area": len(lanes), "line": len(lanes)}


def queue_length_summary(rows: Rows) -> Expected:
    """A box a stream."""
    pairs = {"min": "min_length", "p25": "p25_length", "p50": "p50_length", "p75": "p75_length"}
    pairs |= {"max": "max_length", "time_mean": "time_mean"}
    boxes = len(rows) + apart(rows, "p25_length", "p75_length", "max_length")
    lines = apart(rows, "min_length", "max_length", "max_length")
    marks = {"rule": lines, "rect": boxes, "symbol": len(rows)}
    return {drawn: column(rows, name) for drawn, name in pairs.items()}, marks


def gpu_kernel_types(rows: Rows) -> Expected:
    """A slice for classes that run at once, of all ranks together."""
    parts = sorted(total(part, "busy_ns") / MS for part in by(rows, "classes").values())
    return {"time": parts}, {"arc": len(parts)}


def gpu_kernels_by_name(rows: Rows) -> Expected:
    """A cell a rank and kernel, the ten longest of each class."""
    drawn: Rows = []
    for of_class in by(rows, "class").values():
        names = sorted(by(of_class, "name").values(), key=lambda own: -total(own, "sum_ns"))
        drawn += [row for own in names[:10] for row in own]
    return {"time": column(drawn, "sum_ns", MS)}, {"rect": len(drawn)}


def kernels_across_ranks(rows: Rows) -> Expected:
    """A bar, a line and its two ends a kernel."""
    pairs = {"time": "mean_rank_ns", "low": "min_rank_ns", "high": "max_rank_ns"}
    marks = {"rect": 3 * len(rows), "rule": len(rows)}
    return {drawn: column(rows, name, MS) for drawn, name in pairs.items()}, marks


def launch_histograms(rows: Rows) -> Expected:
    """A bar a bin, with what stands out beside what does not."""
    outliers = [float(row["outlier_count"]) for row in rows if row["outlier_count"]]
    others = [float(row["launch_count"] - row["outlier_count"]) for row in rows]
    counts = sorted(outliers + [count for count in others if count])
    return {"count": counts}, {"rect": len(counts)}


def aten_op_kernels_and_delay(rows: Rows) -> Expected:
    """The twenty most frequent: both delays."""
    drawn = longest(rows, "call_count", 20)
    launch, queue = column(drawn, "launch_delay_ns", US), column(drawn, "queue_delay_ns", MS)
    return {"time": sorted(launch + queue)}, {"rect": 2 * len(drawn)}


def frequent_kernel_sequences(rows: Rows) -> Expected:
    """A bar a sequence: how often it comes."""
    values = {"occurrence_count": column(rows, "occurrence_count")}
    return values | {"time": column(rows, "device_sum_ns", US)}, {"rect": len(rows)}


def idle_causes(rows: Rows) -> Expected:
    """A bar a cause, name and call, on all ranks: the twenty longest."""
    times = [total(own, "idle_ns") for own in by(rows, "cause", "role", "name", "call").values()]
    times = sorted(times)[-20:]
    return {"time": [ns / MS for ns in times]}, {"rect": len(times)}


def ops_by_name(rows: Rows) -> Expected:
    """The fifteen longest of host and device."""
    drawn = [row for side in by(rows, "side").values() for row in longest(side, "sum_ns", 15)]
    return {"time": column(drawn, "sum_ns", MS)}, {"rect": len(drawn)}


def operator_table(rows: Rows) -> Expected:
    """A bar for each of the 15 operators that cost most, on either side."""
    values = {}
    for side in ("device", "host"):
        name = f"{side}_self_ns"
        costs = [{name: total(own, name)} for own in by(rows, "name").values()]
        most = longest([cost for cost in costs if cost[name]], name, 15)
        values[side] = column(most, name, MS if most[0][name] >= MS else US)
    return values, {"rect": sum(map(len, values.values()))}


def source_lines(rows: Rows) -> Expected:
    """A bar for each line with time of itself, on either side; on the device one of its backward pass."""
    sides = ("device_self_ns", "backward_device_self_ns", "host_self_ns")
    lines = [row for row in rows if row["frame"]]
    times = [row[side] / US for side in sides for row in lines if row[side]]
    return {"time": sorted(times)}, {"rect": len(times)}


def modules(rows: Rows) -> Expected:
    """A bar for each module with time of itself, forward and backward, on either side."""
    sides = ("device_self_ns", "backward_device_self_ns", "host_self_ns", "backward_host_self_ns")
    times = [row[side] / US for side in sides for row in rows if row["path"] and row[side]]
    return {"time": sorted(times)}, {"rect": len(times)}


def folded_stacks(rows: Rows) -> Expected:
    """A rectangle for each call in its place, on either side, with the time of all that it calls."""
    inside: dict[tuple[str, tuple[str, ...]], float] = defaultdict(float)
    for row in rows:
        names = (row["stack"] or "").split(";")
        for side in ("device_ns", "host_ns"):
            for depth in range(1, len(names) + 1):
                inside[side, tuple(names[:depth])] += row[side] / US if row["stack"] else 0
    times = sorted(time for time in inside.values() if time)
    return {"time": times}, {"rect": len(times)}


def operator_categories(rows: Rows) -> Expected:
    """The phases of each category on the mean of the ranks."""
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
    """A point for each operator with arithmetic whose roofline is known, and a line for each roof."""
    known = [row for row in rows if row["roofline_ns"] is not None and row["flops"]]
    values = {
        "time": column(known, "device_ns", US),
        "share": sorted(r["peak_pct"] / 100 for r in known),
    }
    return values, {"symbol": len(known), "line": len(by(known, "math_type"))}


def user_annotation_breakdown(rows: Rows) -> Expected:
    """A bar for the mean of the ranks, a line from lowest to highest, its ends."""
    sums = [column(own, "sum_ns", MS) for own in by(rows, "name").values()]
    values = {
        "time": sorted(map(mean, sums)),
        "low": sorted(map(min, sums)),
        "high": sorted(map(max, sums)),
    }
    return values, {"rect": 3 * len(sums), "rule": len(sums)}


def cupti_counters_by_operator(rows: Rows) -> Expected:
    """A bar an operator: value times weight of its counters."""
    counted = [row for row in rows if row["flop_weight"]]
    operators = by(counted, "bottom_level_op").values()
    flops = [sum(r["value"] * r["flop_weight"] for r in own) for own in operators]
    return {"flops": sorted(flops)}, {"rect": len(flops)}


def potential_stragglers(rows: Rows) -> Expected:
    """A bar a rank that was among the last at some time."""
    counts = column(rows, "late_count")
    return {"late_count": counts}, {"rect": seen(counts)}


def profiler_steps(rows: Rows) -> Expected:
    """A line a step from the shortest to the longest rank, a point for the mean."""
    steps = [column(own, "dur", MS) for own in by(rows, "step").values()]
    values = {
        "low": sorted(map(min, steps)),
        "mean": sorted(map(mean, steps)),
        "high": sorted(map(max, steps)),
    }
    return values, {"rule": len(steps), "line": 1, "symbol": len(steps)}


def straggler_metric(rows: Rows) -> Expected:
    """A bar a rank and step, from its start behind the first rank's, as long as it ran."""
    values = {"start": column(rows, "late_ns", US), "length": column(rows, "dur", US)}
    return values, {"rect": len(rows)}


def gpu_timeline(rows: Rows) -> Expected:
    """A bar an operation."""
    values = {"start": column(rows, "start_ns", MS)}
    return values | {"operations": column(rows, "op_count")}, {"rect": len(rows)}


def idle_time_breakdown(rows: Rows) -> Expected:
    """A bar a stream and cause, as shares and as times."""
    causes = {cause: column(own, "idle_ns", MS) for (cause,), own in by(rows, "category").items()}
    return causes, {"rect": 2 * seen(row["idle_ns"] for row in rows)}


def temporal_breakdown(rows: Rows) -> Expected:
    """Four parts a rank, as shares and as times."""
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
    """The parts of each rank's mean step, as shares and as times."""
    means = {
        part: [mean(row[part] for row in own) for own in by(rows, "rank").values()]
        for part in STEP_PARTS
    }
    values = {STEP_PARTS[part][0]: sorted(v / MS for v in own) for part, own in means.items()}
    return values, {"rect": 2 * sum(value > 0 for own in means.values() for value in own)}


def step_breakdown(rows: Rows) -> Expected:
    """The roles of each rank's mean step, as shares and as times."""
    means = {
        part: [mean(row[part] for row in own) for own in by(rows, "rank").values()]
        for part in STEP_ROLES
    }
    known = {part: own for part, own in means.items() if any(own)}
    values = {STEP_ROLES[part][0]: sorted(v / MS for v in own) for part, own in known.items()}
    return values, {"rect": 2 * sum(value > 0 for own in means.values() for value in own)}


def gpu_summary(rows: Rows) -> Expected:
    """A bar and its number a GPU and measure; a pale one for what names do not tell."""
    shares = sorted(row[name] / 100 for row in rows for name in MEASURES if row[name] is not None)
    pale = seen(row["tensor_core_unknown_pct"] for row in rows)
    return {"share": shares}, {"rect": seen(shares) + pale, "text": len(rows) * len(MEASURES)}


def kernel_table(rows: Rows) -> Expected:
    """A bar for the longest, as long as its time on a rank, and a cell a decade that launches last."""
    kernels = sorted(by(rows, "name").values(), key=lambda own: -total(own, "sum_ns"))[:20]
    times = sorted(total(own, "sum_ns") / 2 / US for own in kernels)
    cells = sum(total(own, name) > 0 for own in kernels for name in BINS)
    return {"time": times}, {"rect": len(times) + cells}


def collective_waits(rows: Rows) -> Expected:
    """A cell a rank and collective."""
    unit = MS if max(row["wait_ns"] for row in rows) >= MS else US
    return {"wait": column(rows, "wait_ns", unit)}, {"rect": len(rows)}


def stragglers(rows: Rows) -> Expected:
    """A bar a rank for which others wait."""
    shares = column(rows, "wait_caused_pct", 100)
    return {"share": shares}, {"rect": seen(shares)}


def what_if(rows: Rows) -> Expected:
    """A bar a scenario that has an answer."""
    steps = column([row for row in rows if row["replayed_ns"] is not None], "then_step_ns", MS)
    return {"then": steps}, {"rect": len(steps)}


def process_group_costs(rows: Rows) -> Expected:
    """What is exposed of each group, as shares and as times."""
    values = {}
    for (group,), own in by(rows, "pg_desc").items():
        for part in ("transfer", "wait"):
            times = [total(of, f"exposed_{part}_ns") / US for of in by(own, "rank").values()]
            values[f"{group}: {part}"] = sorted(times)
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def all_to_all_traffic(rows: Rows) -> Expected:
    """A cell a pair."""
    return {"cell": column(rows, "bytes")}, {"rect": len(rows)}


def links(rows: Rows) -> Expected:
    """A cell a link."""
    return {"cell": column(rows, "median_gbps")}, {"rect": len(rows)}


def expert_load(rows: Rows) -> Expected:
    """A bar a rank."""
    return {"times_mean": column(rows, "times_mean")}, {"rect": len(rows)}


def blocking_communication(rows: Rows) -> Expected:
    """What blocks, what does not and what is not known, as shares and as times."""
    parts = {"blocking": "blocking", "coincident": "coincident", "not known": "unknown"}
    values = {drawn: column(rows, f"exposed_{part}_ns", US) for drawn, part in parts.items()}
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def communication_by_rank(rows: Rows) -> Expected:
    """What each rank moves and waits, as shares and as times."""
    values = {name: column(rows, f"{name}_ns", US) for name in ("communication", "wait")}
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def cluster_overview(rows: Rows) -> Expected:
    """A cell a rank and step beside the median of the step, a dot where rank or host is slow."""
    steps = by(rows, "step").values()
    beside = [row["own_ns"] / median(column(own, "own_ns")) - 1 for own in steps for row in own]
    dots = sum(row["verdict"] in ("slow rank", "slow host") for row in rows)
    return {"excess": sorted(beside)}, {"rect": len(rows), "symbol": dots}


def utilisation_over_time(rows: Rows) -> Expected:
    """A cell a rank and bucket that was captured."""
    shares = sorted(row["busy_ns"] / row["observed_ns"] for row in rows if row["observed_ns"])
    return {"busy": shares}, {"rect": len(shares)}


def operator_across_ranks(rows: Rows) -> Expected:
    """A bar a rank and occurrence, a band an occurrence."""
    return {"time": column(rows, "dur_ns", US)}, {"rect": len(rows), "area": len(by(rows, "place"))}


def special_operators(rows: Rows) -> Expected:
    """A cell with its number a rank and kind."""
    counts = column(rows, "op_count")
    return {"op_count": counts}, {"rect": len(rows), "text": len(rows)}


def pipeline_stages(rows: Rows) -> Expected:
    """Parts of each rank's time in the pipeline, as shares and as times."""
    parts = {words: column(rows, name, US) for name, (words, _) in STAGE_PARTS.items()}
    parts = {words: values for words, values in parts.items() if any(values)}
    return parts, {"rect": 2 * sum(seen(values) for values in parts.values())}


def cluster_step_trace(rows: Rows) -> Expected:
    """Parts of the mean step; where the backward pass is not known, the rest is one part."""
    steps = len(rows)
    told = {
        "iteration interval": total(rows, "iteration_interval_ns"),
        "forward and backward": sum(row["forward_backward_ns"] or 0 for row in rows),
        "tail": sum(row["tail_ns"] or 0 for row in rows),
    }
    told["not told apart"] = total(rows, "total_ns") - sum(told.values())
    return {words: [ns / steps / US] for words, ns in told.items()}, {"rect": 2 * len(told)}


def p2p_pairs(rows: Rows) -> Expected:
    """A bar for the transfer on either side, one for a wait, a line between the sides."""
    sides = ("send", "recv")
    first = min(row[f"{side}_start_ns"] for row in rows for side in sides)
    ends = [row["end_ns"] for row in rows for _ in sides]
    waits = [(row, side) for row in rows for side in sides if row[f"{side}_wait_ns"]]
    ends += [row[f"{side}_start_ns"] + row[f"{side}_wait_ns"] for row, side in waits]
    highs = sorted((end - first) / US for end in ends)
    return {"high": highs}, {"rect": len(highs), "line": len(rows)}


def collective_arrivals(rows: Rows) -> Expected:
    """A bar for a wait, one for the transfer."""
    unit = MS if max(row["end_ns"] - row["start_ns"] for row in rows) >= MS else US
    first = min(row["start_ns"] for row in rows)
    ends = [row["end_ns"] for row in rows]
    ends += [row["start_ns"] + row["wait_ns"] for row in rows if row["wait_ns"]]
    highs = sorted((end - first) / unit for end in ends)
    return {"high": highs}, {"rect": len(highs)}


def memory_curve(rows: Rows) -> Expected:
    """A panel a device: an area, a line where something is reserved, a point at the peak."""
    peaks = by([row for row in rows if row["is_peak"]], "device_type", "device")
    of_gpu = [row for row in rows if row["device"] == 0]
    values = {
        "top": sorted(row["allocated_bytes"] for own in peaks.values() for row in own),
        "reserved": column(of_gpu, "reserved_bytes", 1e3),
    }
    values["top"] = sorted(v / (1e3 if v > 8 else 1) for v in values["top"])
    return values, {"area": len(peaks), "line": 1, "symbol": len(peaks)}


def live_at_peak(rows: Rows) -> Expected:
    """Parts of each device's peak, as shares; below, the fullest one by what allocated."""
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
    """A bar for each operator that allocates itself."""
    own = [row for row in rows if row["self_allocated_bytes"] and row["operator_name"]]
    return {"allocated": column(own, "self_allocated_bytes", 1e3)}, {"rect": len(own)}


FIGURES: dict[Callable[[Rows], Expected], tuple[str, dict[str, Any]]] = {
    all_to_all_traffic: ("experts", {}),
    links: ("sends", {}),
    expert_load: ("experts", {}),
    communication_by_rank: ("sends", {}),
    blocking_communication: ("blocking", {}),
    process_group_costs: ("job", {}),
    step_accounting: ("job", {}),
    step_breakdown: ("job", {}),
    gpu_summary: ("views", {}),
    kernel_table: ("job", {}),
    collective_waits: ("job", {}),
    stragglers: ("job", {}),
    what_if: ("job", {}),
    cluster_overview: ("overview", {}),
    utilisation_over_time: ("overview", {}),
    operator_across_ranks: ("overview", {}),
    special_operators: ("overview", {}),
    pipeline_stages: ("pipeline", {}),
    cluster_step_trace: ("passes", {}),
    p2p_pairs: ("pipeline", {}),
    collective_arrivals: ("job", {}),
    comm_comp_overlap: ("job", {}),
    trace_diff: ("pair", {}),
    memory_curve: ("ends", {}),
    live_at_peak: ("memory", {}),
    memory_by_operator: ("memory", {}),
    memory_bandwidth_series: ("job", {}),
    memory_bandwidth_summary: ("job", {}),
    queue_full_time: ("job", {"max_queue_length": 8}),
    queue_length_series: ("job", {}),
    queue_length_summary: ("job", {}),
    gpu_kernel_types: ("job", {}),
    gpu_kernels_by_name: ("job", {}),
    kernels_across_ranks: ("job", {}),
    launch_histograms: ("job", {}),
    aten_op_kernels_and_delay: ("job", {}),
    frequent_kernel_sequences: ("sequences", {"operator_name": "cuda", "min_pattern_len": 1}),
    operator_table: ("job", {}),
    operator_categories: ("job", {}),
    roofline: ("kinds", {}),
    source_lines: ("frames", {}),
    modules: ("frames", {}),
    folded_stacks: ("frames", {}),
    ops_by_name: ("job", {}),
    user_annotation_breakdown: ("job", {}),
    cupti_counters_by_operator: ("cupti", {}),
    potential_stragglers: ("job", {"num_candidates": 1}),
    profiler_steps: ("job", {}),
    straggler_metric: ("job", {}),
    gpu_timeline: ("job", {}),
    idle_causes: ("job", {}),
    idle_time_breakdown: ("job", {}),
    temporal_breakdown: ("job", {}),
}


def test_every_figure_is_looked_at() -> None:
    """A new figure says here what it shows."""
    assert {expected.__name__ for expected in FIGURES} == set(charts.FIGURES)


@pytest.mark.parametrize("expected", FIGURES, ids=lambda expected: expected.__name__)
def test_a_figure_shows_what_its_result_holds(
    expected: Callable[[Rows], Expected], stores: dict[str, TraceStore]
) -> None:
    """Drawn numbers are those of the rows, to six digits; each has its mark; a title above."""
    store, options = FIGURES[expected]
    result = stores[store].run(expected.__name__, **options)
    chart = result.chart()
    values, marks = expected(result.arrow().to_pylist())
    assert min(marks.values()) > 0
    drawn = drawn_rows(chart)
    for name, wanted in values.items():
        assert wanted
        field = name.removeprefix("peak of ")
        found = [row[field] for row in drawn if row.get(field) is not None]
        if field != name:
            found = [max(r[field] for r in own) for own in by(drawn, "lane").values()]
        assert sorted(found) == pytest.approx(wanted, rel=1e-5), name
    title = chart.to_dict()["title"]
    assert (title if isinstance(title, str) else title["text"]).strip()
    assert len(chart.to_json()) < 200_000
    counted = Counter(dict.fromkeys(marks, 0)) + visible_marks(chart)
    assert {kind: counted[kind] for kind in marks} == marks
    assert not set(counted) - set(marks) - {"text"}


@pytest.mark.parametrize(
    ("name", "store", "options", "sentence"),
    [
        ("queue_full_time", "job", {}, "No queue was full; the longest held 22 operations."),
        (
            "trace_diff",
            "pair",
            {"runs": ["base", "base"]},
            "Nothing lasts longer or shorter: base against base.",
        ),
        ("memory_bandwidth_summary", "pair", {}, "The traces record no bandwidth of these copies."),
        (
            "cupti_counters_by_operator",
            "hits",
            {},
            "None of these counters counts floating-point operations.",
        ),
        ("potential_stragglers", "pair", {}, "No rank is late: there is one rank only."),
        ("links", "cut", {}, "Nothing can be said: sizes are not known."),
        (
            "roofline",
            "sequences",
            {},
            "No roofline of an operator with arithmetic is known: inputs do not tell.",
        ),
        (
            "all_to_all_traffic",
            "cut",
            {},
            "Nothing can be said: split sizes are cut short by the profiler.",
        ),
        (
            "expert_load",
            "cut",
            {},
            "Nothing can be said: no all-to-all was found on all ranks of the group.",
        ),
    ],
)
def test_rows_without_a_mark_are_a_sentence(
    name: str, store: str, options: dict[str, Any], sentence: str, stores: dict[str, TraceStore]
) -> None:
    """Axes around nothing say nothing."""
    result = stores[store].run(name, **options)
    assert len(result)
    (row,) = drawn_rows(result.chart())
    assert row == {"text": sentence}
    assert visible_marks(result.chart())["text"] == 1
