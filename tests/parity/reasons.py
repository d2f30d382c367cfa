"""Reasons why an analysis has no rows for a job, derived from the data of the job."""

from __future__ import annotations

import gzip
from pathlib import Path

from hta_sql import TraceStore
from tests.parity.jobs import files_of

GPU = ("no device activity", "SELECT count(*) FROM gpu_ops WHERE run = $run AND class != 'sync'")
LINKED = (
    "no launch of a device operation",
    "SELECT count(*) FROM gpu_ops WHERE run = $run AND launch_id IS NOT NULL",
)
COPIES = (
    "no copy has a bandwidth",
    "SELECT count(*) FROM gpu_ops WHERE run = $run AND bandwidth_gbps > 0",
)
COPYING = (
    "no copy or memset",
    "SELECT count(*) FROM gpu_ops WHERE run = $run AND class = 'memory'",
)
ANNOTATIONS = (
    "no user annotation on the host",
    "SELECT count(*) FROM annotations WHERE run = $run AND NOT on_gpu",
)
ON_GPU = (
    "no user annotation on the device",
    "SELECT count(*) FROM annotations WHERE run = $run AND on_gpu",
)
ANNOTATED = (
    "no kernel under a user annotation",
    "SELECT count(*) FROM annotations WHERE run = $run",
)
OPERATORS = (
    "no aten operator",
    "SELECT count(*) FROM cpu_ops WHERE run = $run AND starts_with(name, 'aten::')",
)
LAUNCHING = (
    "no aten operator around a launch",
    (
        "SELECT count(*) FROM gpu_ops AS g JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank"
        " AND c.event_id = g.launch_id JOIN cpu_ops AS o ON o.run = c.run AND o.rank = c.rank"
        " AND o.tid = c.tid AND o.ts <= c.ts AND o.ts + o.dur >= c.ts + c.dur"
        " AND starts_with(o.name, 'aten::') WHERE g.run = $run"
    ),
)
LINEAR = (
    "no aten::linear",
    "SELECT count(*) FROM cpu_ops WHERE run = $run AND contains(name, 'aten::linear')",
)
STEPS = ("no profiler step", "SELECT count(*) FROM steps WHERE run = $run")
STEP_SPANS = (
    "no profiler step",
    (
        "SELECT count(*) FROM annotations WHERE run = $run AND contains(name, 'ProfilerStep')"
        " AND NOT on_gpu"
    ),
)
IN_STEPS = (
    "no operator in a profiler step",
    (
        "SELECT count(*) FROM cpu_ops AS c JOIN steps AS s ON s.run = c.run AND s.rank = c.rank"
        " AND c.ts BETWEEN s.ts AND s.ts + s.dur WHERE c.run = $run AND s.step = (SELECT min(step)"
        " FROM steps WHERE run = $run)"
    ),
)
SECOND = (
    "no second profiler step in scope",
    (
        "SELECT coalesce(max(n), 0) - 1 FROM (SELECT rank, count(DISTINCT step) - count(DISTINCT step)"
        " FILTER (is_last AND steps_of_run > 1) AS n FROM (SELECT *, (SELECT count(DISTINCT step) FROM"
        " steps AS o WHERE o.run = $run) AS steps_of_run FROM steps WHERE run = $run) GROUP BY rank)"
    ),
)
HOST = (
    "no operator or call on the host",
    ("SELECT count(*) FROM events WHERE run = $run AND table_name IN ('cpu_ops', 'runtime_calls')"),
)
CUPTI = (
    "no CUPTI range",
    "SELECT count(*) FROM other_events WHERE run = $run AND category = 'cuda_profiler_range'",
)
RANKS = ("one rank", "SELECT count(DISTINCT rank) - 1 FROM ranks WHERE run = $run")
IDLE = (
    "no stream with two operations",
    (
        "SELECT count(*) FROM (SELECT 1 FROM gpu_ops WHERE run = $run AND class != 'sync'"
        " GROUP BY rank, device, stream HAVING count(*) > 1)"
    ),
)


QUEUE = (
    "no queue as long",
    "SELECT count(*) FROM queue_length_series(runs := [$run]) WHERE queue_length >= $length",
)

NEEDS: dict[str, tuple[tuple[str, str], ...]] = {
    "temporal_breakdown": (GPU,),
    "incl_last_temporal_breakdown": (GPU,),
    "gpu_kernel_breakdown_all_types": (GPU,),
    "gpu_kernel_breakdown_all_kernels": (GPU,),
    "idle_time_breakdown": (GPU, IDLE),
    "idle_time_interval_stats": (GPU, IDLE),
    "comm_comp_overlap": (GPU,),
    "cuda_kernel_launch_stats": (GPU, LINKED),
    "queue_length_summary": (GPU, LINKED),
    "queue_length_time_series": (GPU, LINKED),
    "time_spent_blocked_on_full_queue_1024": (GPU, LINKED, QUEUE),
    "time_spent_blocked_on_full_queue_100": (GPU, LINKED, QUEUE),
    "time_spent_blocked_on_full_queue_4": (GPU, LINKED, QUEUE),
    "memory_bw_summary": (GPU, COPYING, COPIES),
    "memory_bw_time_series": (GPU, COPYING),
    "gpu_user_annotation_breakdown": (ON_GPU,),
    "cpu_user_annotation_breakdown": (ANNOTATIONS,),
    "gpu_kernels_with_user_annotations": (GPU, ANNOTATED, ON_GPU),
    "aten_op_kernels_and_delay": (GPU, LINKED, OPERATORS, LAUNCHING),
    "frequent_cuda_kernel_sequences": (GPU, LINKED, LINEAR),
    "profiler_steps": (STEPS,),
    "potential_stragglers": (RANKS, STEPS),
    "cupti_counters": (CUPTI,),
    "critical_path_step0": (STEP_SPANS, IN_STEPS),
    "critical_path_step1": (STEP_SPANS, SECOND),
    "critical_path_full": (HOST, GPU),
}
"""Analysis ─▶ its requirements, the most basic one first."""


def reason_of_nothing(store: TraceStore, job: str, frame: str) -> str:
    """Return the first requirement of an analysis that a job does not meet.

    Raises:
        AssertionError: The job meets all requirements, so a result without rows is wrong.
    """
    name = frame
    if frame.startswith("critical_path"):
        name = frame.rpartition("_")[0]
    for words, count in NEEDS[name]:
        about: dict[str, object] = {"run": job}
        if "$length" in count:
            about["length"] = int(name.rpartition("_")[2])
        ((found,),) = store.sql(count, about).rows()
        if found <= 0:
            return words
    raise AssertionError(f"{frame} of {job} has no rows, and nothing that it needs is missing")


def is_bare_list(job: str) -> bool:
    """Return whether a trace is a list of events without metadata, which HTA cannot load."""
    return any(_text(path).lstrip()[:1] == b"[" for path in files_of(job))


def _text(path: Path) -> bytes:
    text = path.read_bytes()
    return gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text
