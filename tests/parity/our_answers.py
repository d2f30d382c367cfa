"""Our TraceAnalysis frames for a job, from the same calls as HTA's expected frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from hta_sql.critical_path import CPGraph
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.library.sql_files import query_sql

Frames = dict[str, pd.DataFrame]

EVERYTHING = 1_000_000_000

SEQUENCES_OF = "aten::linear"
"""Operator whose frequent kernel sequences are compared."""

FULL_QUEUES = (1024, 100, 4)

WINDOWS: dict[str, tuple[str, int | None]] = {
    "critical_path_step0": ("ProfilerStep", 0),
    "critical_path_step1": ("ProfilerStep", 1),
    "critical_path_full": ("", None),
}
"""Prefix of the frames ─▶ annotation and instance of the critical path."""


def our_frames(store: Path, job: str) -> Frames:
    """Return a frame for every analysis of HTA; it is empty if the job has no such data."""
    with (
        TraceAnalysis(store=store, run=job) as analysis,
        TraceAnalysis(store=store, run=job, include_last_profiler_step=True) as everything,
    ):
        ranks = analysis.ranks
        frames = {
            **_breakdowns(analysis, ranks),
            **_operators(analysis, ranks),
            **_counters(analysis, ranks),
            **_lists(analysis, ranks),
            "incl_last_temporal_breakdown": everything.get_temporal_breakdown(),
        }
        for name, window in WINDOWS.items():
            frames.update(_critical_path(analysis, ranks, name, window))
        return frames


def _breakdowns(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    types, kernels = analysis.get_gpu_kernel_breakdown(num_kernels=EVERYTHING, duration_ratio=1)
    idle, stats = analysis.get_idle_time_breakdown(ranks=ranks, show_idle_interval_stats=True)
    return {
        "temporal_breakdown": analysis.get_temporal_breakdown(),
        "gpu_kernel_breakdown_all_types": types,
        "gpu_kernel_breakdown_all_kernels": kernels,
        "idle_time_breakdown": idle,
        "idle_time_interval_stats": pd.DataFrame() if stats is None else stats.reset_index(),
        "comm_comp_overlap": analysis.get_comm_comp_overlap(),
        "cuda_kernel_launch_stats": _by_rank(analysis.get_cuda_kernel_launch_stats(ranks=ranks)),
    }


def _operators(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    def sequences(rank: int) -> pd.DataFrame:
        return analysis.get_frequent_cuda_kernel_sequences(SEQUENCES_OF, None, 1, rank)

    return {
        "gpu_user_annotation_breakdown": _rows(analysis.get_gpu_user_annotation_breakdown()),
        "cpu_user_annotation_breakdown": _rows(
            analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=False)
        ),
        "gpu_kernels_with_user_annotations": _each(
            analysis.get_gpu_kernels_with_user_annotations, ranks
        ),
        "aten_op_kernels_and_delay": _by_rank(analysis.get_aten_op_kernels_and_delay(ranks)),
        "frequent_cuda_kernel_sequences": _each(sequences, ranks).assign(
            operator_name=SEQUENCES_OF
        ),
    }


def _counters(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    queues = analysis.get_queue_length_time_series(ranks)
    return {
        "queue_length_summary": _flat(analysis.get_queue_length_summary(ranks)),
        "queue_length_time_series": _by_rank(
            {rank: frame.reset_index() for rank, frame in queues.items()}
        ),
        **{
            f"time_spent_blocked_on_full_queue_{length}": (
                analysis.get_time_spent_blocked_on_full_queue(queues, length)
            )
            for length in FULL_QUEUES
        },
        "memory_bw_summary": _flat(analysis.get_memory_bw_summary(ranks)),
        "memory_bw_time_series": _by_rank(analysis.get_memory_bw_time_series(ranks)),
    }


def _lists(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    counters = analysis.get_cupti_counter_data_with_operators(ranks)
    return {
        "profiler_steps": pd.DataFrame({"step": analysis.get_profiler_steps()}),
        "potential_stragglers": _ordered(analysis.get_potential_stragglers()),
        "cupti_counters": _by_rank(dict(zip(ranks, counters, strict=False))),
    }


def _critical_path(
    analysis: TraceAnalysis, ranks: list[int], name: str, window: tuple[str, int | None]
) -> Frames:
    graphs = _graphs(analysis, ranks, *window)
    weights = {
        rank: sum(e.weight for e in graph.critical_path_edges) for rank, graph in graphs.items()
    }
    return {
        f"{name}_length": pd.DataFrame(
            {"rank": list(weights), "cp_weight": list(weights.values())}
        ),
        f"{name}_summary": _by_rank(
            {
                rank: graph.summary().rename("pct").rename_axis("bound_by").reset_index()
                for rank, graph in graphs.items()
            }
        ),
        f"{name}_breakdown": _by_rank(
            {rank: graph.get_critical_path_breakdown() for rank, graph in graphs.items()}
        ),
    }


def _graphs(
    analysis: TraceAnalysis, ranks: list[int], annotation: str, instance: int | None
) -> dict[int, CPGraph]:
    """Return rank ─▶ critical path graph, for the ranks that have the window.

    One query for eight ranks takes a quarter of the time of eight queries;
    ``tests/properties/test_scopes.py`` checks that the results are equal.
    """
    scope: dict[str, Any] = {"runs": [analysis.run], "ranks": ranks}
    scope |= {"annotation": annotation, "first_instance": instance or 0}
    nodes = analysis.store.run("critical_path_nodes", **scope).arrow()
    edges = analysis.store.run("critical_path_edges", **scope, infer_syncs=False).arrow()
    graphs = {}
    for rank in ranks:
        own = edges.filter(pc.field("rank") == rank)
        ids = own.column("event_id").drop_null().unique().to_pylist()
        wanted = {"run": analysis.run, "rank": rank, "ids": ids}
        events = analysis.store.sql(query_sql("critical_path", "events"), wanted).arrow()
        of_rank = nodes.filter(pc.field("rank") == rank)
        graph = CPGraph(of_rank, own, events, run=analysis.run, rank=rank)
        graph.critical_path()
        if graph.critical_path_nodes:
            graphs[rank] = graph
    return graphs


def _ordered(ranks: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"place": range(len(ranks)), "rank": ranks})


def _flat(frame: pd.DataFrame | None) -> pd.DataFrame:
    if frame is None:
        return pd.DataFrame()
    columns: list[Any] = list(frame.columns)
    return frame.set_axis(["_".join(column) for column in columns], axis=1).reset_index()


def _rows(frame: pd.DataFrame | None) -> pd.DataFrame:
    return pd.DataFrame() if frame is None else frame


def _each(method: Callable[[int], pd.DataFrame | None], ranks: list[int]) -> pd.DataFrame:
    return _by_rank({rank: method(rank) for rank in ranks})


def _by_rank(frames: Mapping[int, pd.DataFrame | None]) -> pd.DataFrame:
    found = [frame.assign(rank=rank) for rank, frame in frames.items() if frame is not None]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
