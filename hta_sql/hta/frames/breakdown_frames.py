"""Convert breakdown results to HTA's frames: column names, microseconds and rounding.

This module only renames, scales and rounds; all definitions are in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hta_sql.text import NS

_CLASSES = ("computation", "communication", "memory")
"""Kernel classes, in the order in which HTA names combinations of overlapping classes."""


def temporal_breakdown(table: pd.DataFrame, ranks: Sequence[int]) -> pd.DataFrame:
    """Return the frame of ``get_temporal_breakdown``: a row per rank, NaN if it has no GPU ops."""
    table = _row_per_rank(table, ranks)
    parts = ("idle", "compute", "non_compute")
    frame = pd.DataFrame({"rank": table["rank"]})
    for part in parts:
        frame[f"{part}_time(us)"] = table[f"{part}_ns"] / NS
    frame["kernel_time(us)"] = table["span_ns"] / NS
    for part in parts:
        frame[f"{part}_time_pctg"] = table[f"{part}_pct"].astype(float).round(2)
    return frame


def kernel_types(table: pd.DataFrame, *, with_memory: bool) -> pd.DataFrame:
    """Return the first frame of ``get_gpu_kernel_breakdown``: sums over all ranks, longest first.

    Without memory, the time of a kernel that overlaps a copy counts as the kernel alone.
    """
    classes = _CLASSES if with_memory else _CLASSES[:2]

    def label(combination: str) -> str:
        running = combination.split("+")
        return " overlapping ".join(class_.upper() for class_ in classes if class_ in running)

    times = pd.DataFrame({"kernel_type": table["classes"].map(label), "sum": table["busy_ns"]})
    summed = times[times["kernel_type"] != ""].groupby("kernel_type", as_index=False)[["sum"]].sum()
    frame = summed.sort_values(["sum", "kernel_type"], ascending=[False, True], ignore_index=True)
    frame["percentage"] = (100 * frame["sum"] / frame["sum"].sum()).round(1)
    frame["sum"] /= NS
    return frame


def kernels(table: pd.DataFrame, *, with_memory: bool) -> pd.DataFrame:
    """Return the second frame of ``get_gpu_kernel_breakdown``: by kernel type, name and rank."""
    shown = table if with_memory else table[table["class"] != "memory"]
    frame = pd.DataFrame(
        {
            **durations(shown),
            "kernel_type": shown["class"].str.upper(),
            "rank": shown["rank"].astype("int64"),
        }
    )
    return frame.sort_values(["kernel_type", "name", "rank"], ignore_index=True)


def durations(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return names and duration statistics in HTA's columns [µs]."""
    return {
        "name": table["name"],
        "sum (us)": table["sum_ns"] / NS,
        "max (us)": table["max_ns"] / NS,
        "min (us)": table["min_ns"] / NS,
        "stddev": table["std_ns"].astype(float).fillna(0) / NS,
        "mean (us)": table["mean_ns"] / NS,
    }


def idle_time(table: pd.DataFrame) -> pd.DataFrame:
    """Return the first frame of ``get_idle_time_breakdown``, with only the causes that occur."""
    shown = _causes(table)
    return pd.DataFrame(
        {
            "rank": shown["rank"].astype("int64"),
            "stream": shown["stream"],
            "idle_category": shown["category"],
            "idle_time": (shown["idle_ns"] / NS).round(2),
            "idle_time_ratio": (shown["idle_pct"].astype(float) / 100).round(2),
        }
    ).reset_index(drop=True)


def idle_intervals(table: pd.DataFrame, stats: pd.DataFrame) -> pd.DataFrame:
    """Return the second frame of ``get_idle_time_breakdown``: the ``stats`` of each row."""
    keys = ["rank", "device", "stream", "category"]
    merged = _causes(table)[keys].merge(stats, on=keys, how="left")
    frame = pd.DataFrame(
        {
            "rank": merged["rank"].astype("int64"),
            "stream": merged["stream"],
            "count": merged["gap_count"].fillna(0).astype(float),
        }
    )
    columns = {"mean": "mean", "std": "std", "min": "min"}
    columns |= {"25%": "p25", "50%": "p50", "75%": "p75", "max": "max"}
    for hta, ours in columns.items():
        frame[hta] = (merged[f"{ours}_ns"].astype(float) / NS).round(2)
    frame.index = pd.Index(merged["category"], name="idle_category")
    return frame


def overlap(table: pd.DataFrame, ranks: Sequence[int]) -> pd.DataFrame:
    """Return the frame of ``get_comm_comp_overlap``: a row per rank, NaN without communication."""
    table = _row_per_rank(table, ranks)
    pctg = table["overlap_pct"].astype(float).round(2)
    return pd.DataFrame({"rank": table["rank"], "comp_comm_overlap_pctg": pctg})


def launches(table: pd.DataFrame, ranks: Sequence[int]) -> dict[int, pd.DataFrame]:
    """Return the frames of ``get_cuda_kernel_launch_stats``: one per rank, in execution order."""
    frame = pd.DataFrame(
        {
            "correlation": table["correlation"],
            "cpu_duration": table["cpu_dur_ns"] / NS,
            "gpu_duration": table["gpu_dur_ns"] / NS,
            "launch_delay": table["launch_delay_ns"] / NS,
        }
    )
    return {rank: frame[table["rank"] == rank].reset_index(drop=True) for rank in ranks}


def _row_per_rank(table: pd.DataFrame, ranks: Sequence[int]) -> pd.DataFrame:
    return table.set_index("rank").reindex(list(ranks)).rename_axis("rank").reset_index()


def _causes(table: pd.DataFrame) -> pd.DataFrame:
    # HTA counts the first op of a stream, which has no gap before it, as "other". Therefore the row
    # "other" always exists; the other rows exist only if such a gap occurs.
    return table[(table["gap_count"] > 0) | (table["category"] == "other")]
