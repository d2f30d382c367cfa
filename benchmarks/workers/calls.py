"""Make every public call of HTA's TraceAnalysis, TraceDiff and CallGraph, in this package or in HTA.

Both have the same modules, classes and arguments, so the same code runs in either. The request
selects the package (``package``), the traces (``files``) and, for this package, the store.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.workers.laps import Laps, request

STEP = "ProfilerStep"


class Session:
    """State that the calls share: the opened job, and results that other calls use.

    Attributes:
        analyzer: The TraceAnalysis.
        diff: Module with TraceDiff and LabeledTrace.
        call_graph: Module with CallGraph.
        ranks: Argument ``ranks`` for calls that take one; None means their default, the first rank.
        operator: Operator whose kernel sequences are requested.
        folder: Output folder of calls that write traces.
    """

    def __init__(self, asked: dict[str, Any], modules: list[ModuleType], folder: str) -> None:
        main, self.diff, self.call_graph = modules
        files = {int(rank): path for rank, path in asked["files"].items()}
        # Only this package has stores; HTA has none.
        store = {"store": asked["store"]} if asked.get("store") else {}
        self.analyzer = main.TraceAnalysis(trace_files=files, **store)
        self.ranks = sorted(files) if asked["all_ranks"] else None
        self.operator: str = asked["operator"]
        self.folder = folder
        self.series: Any = None
        self.graph: Any = None
        self.labeled: list[Any] = []

    def queue_series(self) -> None:
        """Compute the queue length series for the two calls that use them."""
        self.series = self.analyzer.get_queue_length_time_series(ranks=self.ranks)

    def critical_path(self) -> None:
        """Compute the critical path graph for the calls that use it."""
        self.graph, _ = self.analyzer.critical_path_analysis(0, STEP, 0)

    def label(self) -> None:
        """Label the job twice, as control and as test."""
        trace = self.analyzer.t
        self.labeled = [self.diff.LabeledTrace(label, t=trace) for label in ("control", "test")]


Call = Callable[[Session], object]

CALLS: dict[str, Call] = {
    "get_temporal_breakdown": lambda s: s.analyzer.get_temporal_breakdown(visualize=False),
    "get_gpu_kernel_breakdown": lambda s: s.analyzer.get_gpu_kernel_breakdown(visualize=False),
    "get_idle_time_breakdown": lambda s: s.analyzer.get_idle_time_breakdown(
        ranks=s.ranks, visualize=False, show_idle_interval_stats=True
    ),
    "get_comm_comp_overlap": lambda s: s.analyzer.get_comm_comp_overlap(visualize=False),
    "get_cuda_kernel_launch_stats": lambda s: s.analyzer.get_cuda_kernel_launch_stats(
        ranks=s.ranks, visualize=False
    ),
    "get_queue_length_time_series": Session.queue_series,
    "get_queue_length_summary": lambda s: s.analyzer.get_queue_length_summary(ranks=s.ranks),
    "get_queue_length_summary_from_time_series": (
        lambda s: s.analyzer.get_queue_length_summary_from_time_series(s.series)
    ),
    "get_time_spent_blocked_on_full_queue": (
        lambda s: s.analyzer.get_time_spent_blocked_on_full_queue(s.series)
    ),
    "get_memory_bw_time_series": lambda s: s.analyzer.get_memory_bw_time_series(ranks=s.ranks),
    "get_memory_bw_summary": lambda s: s.analyzer.get_memory_bw_summary(ranks=s.ranks),
    "get_profiler_steps": lambda s: s.analyzer.get_profiler_steps(),
    "get_potential_stragglers": lambda s: s.analyzer.get_potential_stragglers(),
    "get_aten_op_kernels_and_delay": (
        lambda s: s.analyzer.get_aten_op_kernels_and_delay(ranks=s.ranks)
    ),
    "get_frequent_cuda_kernel_sequences": (
        lambda s: s.analyzer.get_frequent_cuda_kernel_sequences(s.operator, s.folder, 1)
    ),
    "get_gpu_user_annotation_breakdown": (
        lambda s: s.analyzer.get_gpu_user_annotation_breakdown(visualize=False)
    ),
    "get_gpu_user_annotation_breakdown (host)": (
        lambda s: s.analyzer.get_gpu_user_annotation_breakdown(False, visualize=False)
    ),
    "get_gpu_kernels_with_user_annotations": (
        lambda s: s.analyzer.get_gpu_kernels_with_user_annotations(0)
    ),
    "get_cupti_counter_data_with_operators": (
        lambda s: s.analyzer.get_cupti_counter_data_with_operators(ranks=s.ranks or [0])
    ),
    "critical_path_analysis": Session.critical_path,
    "CPGraph.summary": lambda s: s.graph.summary(),
    "CPGraph.get_critical_path_breakdown": lambda s: s.graph.get_critical_path_breakdown(),
    "overlay_critical_path_analysis": (
        lambda s: s.analyzer.overlay_critical_path_analysis(0, s.graph, s.folder)
    ),
    "generate_trace_with_counters": lambda s: s.analyzer.generate_trace_with_counters(),
    # Called late: CallGraph adds columns to the frames that HTA's other methods read, and HTA's
    # LabeledTrace replaces the frames.
    "CallGraph": lambda s: s.call_graph.CallGraph(s.analyzer.t, ranks=s.ranks or [0]),
    "LabeledTrace (two)": Session.label,
    "TraceDiff.compare_traces": lambda s: s.diff.TraceDiff.compare_traces(*s.labeled),
    "TraceDiff.ops_diff": lambda s: s.diff.TraceDiff.ops_diff(*s.labeled),
}
"""Name ─▶ the call, in call order."""

LOADING = frozenset({"LabeledTrace (two)"})
"""Calls in which HTA loads the traces again; they count as loading."""


def main(asked: dict[str, Any]) -> None:
    """Import, load or open, then make each call once; record an exception as the result of its call."""
    laps = Laps()
    # Imported by name, because the request selects the package.
    names = ("trace_analysis", "trace_diff", "common.trace_call_graph")
    modules = [importlib.import_module(f"{asked['package']}.{name}") for name in names]
    laps.lap("import")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        session = Session(asked, modules, folder)
        laps.lap("open")
        calls = {} if asked.get("only_open") else CALLS
        for name, call in calls.items():
            try:
                call(session)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
                laps.lap(name, error=f"{type(error).__name__}: {error}".splitlines()[0][:200])
            else:
                laps.lap(name)
    laps.print()


if __name__ == "__main__":
    main(request())
