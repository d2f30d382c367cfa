"""HTA's frames for a job, limited to the columns that can be compared."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from tests.parity import hta_on_cpu_only
from tests.parity.jobs import HTA
from tests.parity.own.answers import own_frame
from tests.parity.own.jobs import OWN_JOBS

KEYS = {
    "temporal_breakdown": ["rank"],
    "incl_last_temporal_breakdown": ["rank"],
    "gpu_kernel_breakdown_all_types": ["kernel_type"],
    "gpu_kernel_breakdown_all_kernels": ["kernel_type", "name", "rank"],
    "idle_time_breakdown": ["rank", "stream", "idle_category"],
    "idle_time_interval_stats": ["rank", "stream", "idle_category"],
    "comm_comp_overlap": ["rank"],
    "cuda_kernel_launch_stats": ["rank", "correlation", "occurrence"],
    "queue_length_summary": ["rank", "stream"],
    "queue_length_time_series": ["rank", "stream", "index"],
    "time_spent_blocked_on_full_queue_1024": ["rank", "stream"],
    "time_spent_blocked_on_full_queue_100": ["rank", "stream"],
    "time_spent_blocked_on_full_queue_4": ["rank", "stream"],
    "memory_bw_summary": ["rank", "name"],
    "memory_bw_time_series": ["rank", "name", "point"],
    "gpu_user_annotation_breakdown": ["rank", "name"],
    "cpu_user_annotation_breakdown": ["rank", "name"],
    "gpu_kernels_with_user_annotations": ["rank", "index"],
    "aten_op_kernels_and_delay": ["rank", "aten_op_name", "kernel_sequence"],
    "frequent_cuda_kernel_sequences": ["rank", "operator_name", "pattern"],
    "profiler_steps": ["step"],
    "potential_stragglers": ["place"],
    "cupti_counters": ["rank", "index"],
    "critical_path_step0_length": ["rank"],
    "critical_path_step0_summary": ["rank", "bound_by"],
    "critical_path_step0_breakdown": ["rank", "type", "event_idx", "occurrence"],
    "critical_path_step1_length": ["rank"],
    "critical_path_step1_summary": ["rank", "bound_by"],
    "critical_path_step1_breakdown": ["rank", "type", "event_idx", "occurrence"],
    "critical_path_full_length": ["rank"],
    "critical_path_full_summary": ["rank", "bound_by"],
    "critical_path_full_breakdown": ["rank", "type", "event_idx", "occurrence"],
}
"""Frame ─▶ columns that identify a row."""

FRAMES = list(KEYS)

KEY_OF_PAIRS = ["item"]
"""Key columns of the frames and lists for pairs of traces."""

_BREAKDOWN = ["rank", "type", "event_idx", "duration", "s_name", "bound_by"]
_CUPTI = ["rank", "index", "cat", "name", "ts", "dur", "index_runtime"]

COLUMNS = {
    "gpu_kernels_with_user_annotations": [
        *("index", "rank", "dur", "stream", "correlation", "s_name", "s_user_annotation")
    ],
    "queue_length_time_series": ["rank", "stream", "index", "ts", "queue_length"],
    "memory_bw_time_series": ["rank", "name", "ts", "memory_bw_gbps"],
    "cupti_counters": [*_CUPTI, "op_stack", "top_level_op", "bottom_level_op"],
    **{name: _BREAKDOWN for name in FRAMES if name.endswith("_breakdown") and "path" in name},
}
"""Compared columns of frames in which HTA's other columns are internal ids or host links."""

COUNTERS = "smsp__"
"""Prefix of hardware counter names, each of which is a column of cupti_counters."""


def hta_frame(job: str, frame: str) -> pd.DataFrame | None:
    """Return HTA's frame: empty if HTA returned None or [], and None if it crashed."""
    if job in OWN_JOBS:
        return own_frame(job, frame)
    if job == hta_on_cpu_only.JOB:
        return hta_on_cpu_only.answers().get(frame)
    if frame.startswith("critical_path"):
        return _critical_path(job, frame)
    path = HTA / job / f"{frame}.parquet"
    if not path.exists():
        listed = path.with_suffix(".json")
        return _listed(frame, json.loads(listed.read_text())) if listed.exists() else None
    table = pd.read_parquet(path)
    if "_rank" in table.columns:
        table = table.rename(columns={"_rank": "rank"})
    if frame == "cupti_counters":
        # The job has one rank, and the file stores lists as JSON.
        table = table.assign(rank=0, op_stack=table["op_stack"].map(json.loads))
    return chosen(frame, table)


def chosen(frame: str, table: pd.DataFrame) -> pd.DataFrame:
    """Select the columns that are compared."""
    columns = [c for c in COLUMNS.get(frame, list(table.columns)) if c in table.columns]
    if frame == "cupti_counters":
        columns += [c for c in table.columns if c.startswith(COUNTERS)]
    return table[[column for column in columns if column != "_idx0"]]


def _listed(frame: str, answer: Any) -> pd.DataFrame:
    if not answer:
        return pd.DataFrame()
    if frame == "profiler_steps":
        return pd.DataFrame({"step": answer})
    return pd.DataFrame({"place": range(len(answer)), "rank": answer})


def _critical_path(job: str, frame: str) -> pd.DataFrame | None:
    window, _, part = frame.rpartition("_")
    path = HTA / job / f"{window}.json"
    if not path.exists():
        return None
    graphs = {rank: graph for rank, graph in json.loads(path.read_text()).items() if graph}
    failed = [rank for rank, graph in graphs.items() if "error" in graph]
    graphs = {rank: graph for rank, graph in graphs.items() if graph.get("ok")}
    if failed and not graphs:
        return None
    if part == "length":
        lengths = [graph["cp_weight"] for graph in graphs.values()]
        return pd.DataFrame({"rank": [int(rank) for rank in graphs], "cp_weight": lengths})
    table = path.with_name(f"{frame}.parquet")
    if not graphs or not table.exists():
        return pd.DataFrame()
    return chosen(frame, pd.read_parquet(table).rename(columns={"_rank": "rank"}))
