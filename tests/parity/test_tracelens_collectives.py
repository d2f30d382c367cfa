"""Every figure in TraceLens's communication tables equals ours, or differs for a listed reason.

TraceLens uses µs, MiB and GiB/s. Its times are doubles of µs since the epoch, accurate to 1 ns.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import mean, median, stdev
from typing import Any

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import SHARED

TRACELENS = SHARED / "expected" / "tracelens"

pytestmark = pytest.mark.skipif(not TRACELENS.is_dir(), reason="TraceLens's tables are not here")

Row = dict[str, Any]

MIB, GIB = 1024**2, 1024**3

REASONS = {
    "no group": "What was launched before the capture has no metadata: it takes the group of its "
    "stream here; TraceLens leaves it in none.",
    "plain ordinal": "Of these TraceLens takes the n-th kernel of each rank for one collective, "
    "though the captures opened at different moments.",
    "latency": "TraceLens divides by the shortest duration of a rank, hta_sql by the time from "
    "the last start to the first end: the rank that came last did not leave first.",
}
"""Short name ─▶ reason why TraceLens's figures differ."""

EXPECTED = {
    "hta_nccl_parser_config": {"equal": 273},
    "megatron_tp2_v100": {"equal": 521, "latency": 26},
    "nanogpt_8rank_h100": {"equal": 7668, "latency": 102, "no group": 567, "plain ordinal": 25},
}
"""Job ─▶ number of equal figures, and of different figures by reason."""


@dataclass
class Figures:
    """Counts of compared figures by outcome."""

    went: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[str, Any, Any]] = field(default_factory=list)

    def add(
        self, name: str, theirs: str, ours: Any, *, abs_: float = 0, rel: float = 0, why: str = ""
    ) -> None:
        """Compare one figure within tolerances; ``why`` is the reason if it differs."""
        if isinstance(ours, str):
            same = theirs == ours
        elif theirs == "" or ours is None:
            same = theirs == "" and ours is None
        else:
            same = float(theirs) == pytest.approx(float(ours), abs=abs_, rel=rel)
        self.went["equal" if same else why or "unexplained"] += 1
        if not same and not why:
            self.unexplained.append((name, theirs, ours))

    def time(self, name: str, theirs: str, ours: float, *, abs_: float = 0.003) -> None:
        """Compare a time in µs with ours in ns."""
        self.add(name, theirs, ours / 1000, abs_=abs_, rel=1e-9)


def table(job: str, name: str) -> list[Row]:
    """Return a TraceLens table, which is empty if TraceLens wrote none."""
    path = TRACELENS / f"{job}_{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ours(store: TraceStore, job: str) -> list[Row]:
    """Return our collectives with their recorded waits, in time order on each rank."""
    every: dict[str, Any] = {"runs": [job], "include_last_profiler_step": True}
    waits = store.run(
        "collective_waits", **every, include_unsure=True, correct_clocks=False
    ).arrow()
    found = {(row["rank"], row["event_id"]): row for row in waits.to_pylist()}
    rows = store.run("collectives", **every).arrow().to_pylist()
    rows = [{**row, **found[row["rank"], row["event_id"]]} for row in rows]
    return sorted(rows, key=lambda row: (row["rank"], row["start_ns"], row["event_id"]))


def kind(name: str) -> str:
    """Return the name of a collective in our spelling."""
    folded = re.sub("_|base", "", name)
    return {"allreduce": "all_reduce", "allgather": "all_gather"}.get(
        folded, {"reducescatter": "reduce_scatter"}.get(folded, folded)
    )


def number(text: str) -> int | None:
    """Parse a count that pandas may have written as a double."""
    return int(float(text)) if text else None


def compare_kernels(figures: Figures, theirs: list[Row], rows: list[Row]) -> None:
    """Compare kernels one by one, in time order on each rank."""
    by_rank: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_rank[row["rank"]].append(row)
    theirs = sorted(theirs, key=lambda line: (int(line["rank"]), float(line["ts"])))
    first = min(float(line["ts"]) for line in theirs)
    start = min(row["start_ns"] for row in rows)
    places: Counter[int] = Counter()
    groups: dict[str, set[int]] = defaultdict(set)
    for line in theirs:
        row = by_rank[int(line["rank"])][places[int(line["rank"])]]
        places[int(line["rank"])] += 1
        is_known = line["Process Group Name"] != "Unknown_Group"
        why = "" if is_known else "no group"
        figures.add("stream", line["stream"], row["stream"])
        figures.time("dur", line["dur"], row["dur_ns"])
        figures.time("ts", str(float(line["ts"]) - first), row["start_ns"] - start, abs_=0.5)
        figures.add("group", line["Process Group Name"], row["pg_name"] or "", why=why)
        figures.add("size", line["Group size"], row["group_size"], why=why)
        figures.add("kind", kind(line["Collective name"]), row["collective"], why=why)
        figures.add("dtype", line["dtype"], row["elem_type"] or "", why=why)
        figures.add("in", line["In msg nelems"], row["in_elems"], why=why)
        figures.add("out", line["Out msg nelems"], row["out_elems"], why=why)
        size = row["bytes"] / MIB if row["bytes"] is not None else None
        full = "Out msg size (MB)" if row["collective"] == "all_gather" else "In msg size (MB)"
        figures.add("bytes", line[full], size, rel=1e-9, why=why)
        groups[line["collective_id"]].add(row["collective_id"])
    for name, found in groups.items():
        # Each collective of TraceLens must correspond to exactly one of ours.
        why = "plain ordinal" if name.startswith("Unknown") else ""
        figures.add("collective_id", "1", len(found), why=why)
    assert sum(places.values()) == len(rows)


def compare_collectives(figures: Figures, theirs: list[Row], rows: list[Row]) -> None:
    """Compare waits, skew and bandwidth of each collective that has metadata."""
    parts: dict[int, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        parts[row["collective_id"]][row["rank"]] = row
    by_length = {tuple(p[r]["dur_ns"] for r in sorted(p)): p for p in parts.values()}
    for line in theirs:
        size = int(float(line["Group size"]))
        lengths = tuple(round(float(line[f"rank_{rank}_dur"]) * 1000) for rank in range(size))
        part = by_length[lengths]
        waits = [part[rank]["wait_ns"] for rank in range(size)]
        ends = [part[rank]["end_ns"] for rank in range(size)]
        one = part[0]
        figures.add("group", line["Process Group Name"], one["pg_name"])
        figures.add("ranks", line["Process Group Ranks"].replace(" ", ""), one["pg_ranks"])
        figures.add("kind", kind(line["Collective name"]), one["collective"])
        figures.add("dtype", line["dtype"], one["elem_type"])
        figures.add("in", line["In msg nelems"], one["in_elems"])
        figures.add("out", line["Out msg nelems"], one["out_elems"])
        figures.add("bytes", line["Full msg size (MB)"], one["bytes"] / MIB, rel=1e-9)
        figures.time("latency", line["comm_latency"], min(lengths))
        figures.time("skew", line["skew in start time"], max(waits))
        figures.time("end skew", line["skew in end time"], max(ends) - min(ends))
        figures.time("average wait", line["avg_wait_time"], mean(waits))
        figures.add("earliest", line["earliest arrival rank"], waits.index(max(waits)))
        for rank in range(size):
            figures.time("wait", line[f"rank_{rank}_wait_time"], waits[rank])
        for name, column in (("algo", "algbw_gbps"), ("bus", "busbw_gbps")):
            bandwidth = one[column] * 1e9 / GIB
            scaled = bandwidth * one["transfer_ns"] / min(lengths)
            is_that = scaled == pytest.approx(float(line[f"{name} bw (GB/s)"]), rel=1e-4)
            why = "latency" if is_that else ""
            figures.add(name, line[f"{name} bw (GB/s)"], bandwidth, rel=1e-4, why=why)


def compare_sums(figures: Figures, theirs: list[Row], rows: list[Row]) -> None:
    """Compare the kernel durations by rank, group, collective, type and size."""
    of: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows:
        if row["detected_by"] == "metadata":
            same = (row["rank"], row["pg_name"], row["collective"], row["elem_type"])
            of[(*same, row["in_elems"], row["stream"])].append(row["dur_ns"])
    for line in theirs:
        group = (int(line["rank"]), line["Process Group Name"], kind(line["Collective name"]))
        lengths = of.pop(
            (*group, line["dtype"], number(line["In msg nelems"]), number(line["stream"]))
        )
        spread = stdev(lengths) if len(lengths) > 1 else None
        figures.add("count", line["operation_count"], len(lengths))
        for name, value in (("sum", sum(lengths)), ("mean", mean(lengths))):
            figures.time(name, line[f"dur_{name}"], value)
        figures.time("min", line["dur_min"], min(lengths))
        figures.time("max", line["dur_max"], max(lengths))
        figures.add("std", line["dur_std"], spread and spread / 1000, rel=1e-6)
    assert not of


def compare_statistics(figures: Figures, theirs: list[Row], rows: list[Row]) -> None:
    """Compare latency and skew over all collectives of one kind, type and size."""
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["detected_by"] == "metadata":
            parts[row["collective_id"]].append(row)
    of: dict[tuple[Any, ...], list[list[Row]]] = defaultdict(list)
    for part in parts.values():
        one = part[0]
        of[one["pg_name"], one["collective"], one["elem_type"], one["in_elems"]].append(part)
    for line in theirs:
        found = of.pop(
            (
                *(line["Process Group Name"], kind(line["Collective name"]), line["dtype"]),
                number(line["In msg nelems"]),
            )
        )
        latencies = [min(row["dur_ns"] for row in part) for part in found]
        skews = [max(row["wait_ns"] for row in part) for part in found]
        ends = [[row["end_ns"] for row in part] for part in found]
        figures.add("count", line["count"], len(found))
        figures.time("total", str(float(line["Total comm latency (ms)"]) * 1000), sum(latencies))
        for name, values in (
            ("comm_latency", latencies),
            ("skew in start time", skews),
            ("skew in end time", [max(end) - min(end) for end in ends]),
        ):
            for word, function in (("mean", mean), ("median", median), ("min", min), ("max", max)):
                figures.time(name, line[f"{name}_{word}"], function(values))
    assert not of or not theirs


def compare_ranks(figures: Figures, theirs: list[Row], rows: list[Row]) -> None:
    """Compare how often each rank is first or last, and how long it waits."""
    known = [row for row in rows if row["detected_by"] == "metadata"]
    first: Counter[int] = Counter()
    waits: dict[int, dict[int, int]] = defaultdict(dict)
    for row in known:
        waits[row["collective_id"]][row["rank"]] = row["wait_ns"]
    for of_ranks in waits.values():
        first[max(of_ranks, key=lambda rank: (of_ranks[rank], -rank))] += 1
    for line in theirs:
        own = [row for row in known if row["rank"] == int(line["rank"])]
        waited, last = sum(row["wait_ns"] for row in own), sum(row["is_last"] for row in own)
        figures.add("collectives", line["num_collectives"], len(own))
        figures.add("last", line["times_arrived_last"], last)
        figures.add("last share", line["pct_arrived_last"], 100 * last / len(own), abs_=0.0501)
        figures.add("first", line["times_arrived_first"], first[int(line["rank"])])
        figures.time("wait", line["total_wait_time_us"], waited, abs_=0.06)
        figures.time("mean wait", line["mean_wait_time_us"], waited / len(own), abs_=0.06)
        length = sum(row["dur_ns"] for row in rows if row["rank"] == int(line["rank"]))
        figures.time("length", line["total_nccl_dur_us"], length, abs_=0.06)


@pytest.mark.parametrize("job", EXPECTED)
def test_every_figure_is_equal_or_explained(job: str, jobs_store: TraceStore) -> None:
    """Every communication table of TraceLens matches, for the jobs that TraceLens can read."""
    figures, rows = Figures(), ours(jobs_store, job)
    compare_kernels(figures, table(job, "nccl_long"), rows)
    compare_collectives(figures, table(job, "nccl_implicit_sync"), rows)
    compare_sums(figures, table(job, "nccl_summary_long"), rows)
    compare_statistics(figures, table(job, "nccl_summary_implicit_sync"), rows)
    compare_ranks(figures, table(job, "straggler_summary"), rows)
    assert figures.unexplained == []
    assert figures.went == EXPECTED[job]
    assert figures.went.keys() <= REASONS.keys() | {"equal"}
