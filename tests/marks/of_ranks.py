"""Expected values and marks in charts that compare ranks."""

from __future__ import annotations

from statistics import median

from tests.marks.rows import MS, US, Expected, Rows, by, column, parts_of, seen, total

STAGE_PARTS = parts_of("pipeline_stages")


def collective_waits(rows: Rows) -> Expected:
    """Expect a cell for each rank and collective."""
    unit = MS if max(row["wait_ns"] for row in rows) >= MS else US
    return {"wait": column(rows, "wait_ns", unit)}, {"rect": len(rows)}


def stragglers(rows: Rows) -> Expected:
    """Expect a bar for each rank with its delay relative to its peers."""
    shares = column(rows, "late_pct", 100)
    return {"amount": shares}, {"rect": seen(shares)}


def what_if(rows: Rows) -> Expected:
    """Expect a bar for each scenario that has an answer."""
    steps = column([row for row in rows if row["replayed_ns"] is not None], "replayed_step_ns", MS)
    return {"then": steps}, {"rect": len(steps)}


def process_group_costs(rows: Rows) -> Expected:
    """Expect the exposed transfer and wait times of each group, as shares and as times."""
    values = {}
    for (group,), own in by(rows, "pg_desc").items():
        for part in ("transfer", "wait"):
            times = [total(of, f"exposed_{part}_ns") / US for of in by(own, "rank").values()]
            values[f"{group}: {part}"] = sorted(times)
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def all_to_all_traffic(rows: Rows) -> Expected:
    """Expect a cell for each pair of ranks."""
    return {"cell": column(rows, "bytes")}, {"rect": len(rows)}


def links(rows: Rows) -> Expected:
    """Expect a cell for each link."""
    return {"cell": column(rows, "median_gbps")}, {"rect": len(rows)}


def expert_load(rows: Rows) -> Expected:
    """Expect a bar for each rank."""
    return {"amount": column(rows, "ratio_to_mean")}, {"rect": len(rows)}


def blocking_communication(rows: Rows) -> Expected:
    """Expect blocking, coincident and unknown time, as shares and as times."""
    parts = {"blocking": "blocking", "coincident": "coincident", "unknown": "unknown"}
    values = {drawn: column(rows, f"exposed_{part}_ns", US) for drawn, part in parts.items()}
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def expert_parallel(rows: Rows) -> Expected:
    """Expect overlapped and exposed time for each rank and role, as shares and as times."""
    bars = by(rows, "rank", "comm_role").values()
    values = {
        drawn: sorted(total(bar, name) / US for bar in bars)
        for drawn, name in {"overlapped": "overlapped_ns", "exposed": "exposed_ns"}.items()
    }
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def communication_by_rank(rows: Rows) -> Expected:
    """Expect the transfer and wait of each rank, as shares and as times."""
    values = {name: column(rows, f"{name}_ns", US) for name in ("communication", "wait")}
    return values, {"rect": 2 * sum(seen(times) for times in values.values())}


def cluster_overview(rows: Rows) -> Expected:
    """Expect a cell for each rank and step, and a dot for each slow rank or host.

    A cell shows the rank's time relative to the median of the step.
    """
    steps = by(rows, "step").values()
    beside = [
        row["non_wait_ns"] / median(column(own, "non_wait_ns")) - 1 for own in steps for row in own
    ]
    dots = sum(row["verdict"] in ("slow rank", "slow host") for row in rows)
    return {"excess": sorted(beside)}, {"rect": len(rows), "symbol": dots}


def utilization_over_time(rows: Rows) -> Expected:
    """Expect a cell for each rank and time bucket that was captured."""
    shares = sorted(row["busy_ns"] / row["observed_ns"] for row in rows if row["observed_ns"])
    return {"busy": shares}, {"rect": len(shares)}


def operator_across_ranks(rows: Rows) -> Expected:
    """Expect a bar for each rank and occurrence, and a band for each occurrence."""
    return {"time": column(rows, "dur_ns", US)}, {
        "rect": len(rows),
        "area": len(by(rows, "position")),
    }


def special_operators(rows: Rows) -> Expected:
    """Expect a cell with a count for each rank and kind of operator."""
    counts = column(rows, "op_count")
    return {"op_count": counts}, {"rect": len(rows), "text": len(rows)}


def pipeline_stages(rows: Rows) -> Expected:
    """Expect the parts of each rank's time in the pipeline, as shares and as times."""
    parts = {words: column(rows, name, US) for name, (words, _) in STAGE_PARTS.items()}
    parts = {words: values for words, values in parts.items() if any(values)}
    return parts, {"rect": 2 * sum(seen(values) for values in parts.values())}


def cluster_step_trace(rows: Rows) -> Expected:
    """Expect the parts of each rank's step, with the rest as a part ``not separable``."""
    parts = ("iteration_interval_ns", "forward_backward_ns", "tail_ns")
    told = {
        words: [(row[part] or 0) / US for row in rows]
        for words, part in zip(
            ("iteration interval", "forward and backward", "tail"), parts, strict=True
        )
    }
    told["not separable"] = [
        (row["total_ns"] - sum(row[part] or 0 for part in parts)) / US for row in rows
    ]
    return {words: sorted(values) for words, values in told.items()}, {"rect": 2 * len(told)}


def p2p_pairs(rows: Rows) -> Expected:
    """Expect bars for the transfer and wait of each side, and a line that connects the sides."""
    sides = ("send", "recv")
    first = min(row[f"{side}_start_ns"] for row in rows for side in sides)
    ends = [row["end_ns"] for row in rows for _ in sides]
    waits = [(row, side) for row in rows for side in sides if row[f"{side}_wait_ns"]]
    ends += [row[f"{side}_start_ns"] + row[f"{side}_wait_ns"] for row, side in waits]
    highs = sorted((end - first) / US for end in ends)
    return {"high": highs}, {"rect": len(highs), "line": len(rows)}


def collective_arrivals(rows: Rows) -> Expected:
    """Expect a bar for each wait and each transfer."""
    unit = MS if max(row["end_ns"] - row["start_ns"] for row in rows) >= MS else US
    first = min(row["start_ns"] for row in rows)
    ends = [row["end_ns"] for row in rows]
    ends += [row["start_ns"] + row["wait_ns"] for row in rows if row["wait_ns"]]
    highs = sorted((end - first) / unit for end in ends)
    return {"high": highs}, {"rect": len(highs)}
