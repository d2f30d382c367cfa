"""Results of HTA 0.6.1 for the job hta_cpu_only, which has no device activity (rank 34 only).

The frames of the other jobs are stored elsewhere. HTA can load this trace, but the calls that have
no result here raise IndexError, ValueError, KeyError or AssertionError.
"""

from __future__ import annotations

import pandas as pd

JOB = "hta_cpu_only"

_NOTHING = (
    "gpu_kernel_breakdown_all_types",
    "gpu_kernel_breakdown_all_kernels",
    "cuda_kernel_launch_stats",
    "queue_length_summary",
    "queue_length_time_series",
    "time_spent_blocked_on_full_queue_1024",
    "time_spent_blocked_on_full_queue_100",
    "time_spent_blocked_on_full_queue_4",
    "memory_bw_summary",
    "memory_bw_time_series",
    "gpu_user_annotation_breakdown",
    "gpu_kernels_with_user_annotations",
    "frequent_cuda_kernel_sequences",
    "cupti_counters",
)
_ANNOTATIONS = pd.DataFrame(
    {
        "name": ["ProfilerStep#551", "gloo:all_reduce"],
        "sum (us)": [210109.162, 2135455.918],
        "max (us)": [210109.162, 380583.378],
        "min (us)": [210109.162, 156666.049],
        "stddev": [0.0, 88230.89564103585],
        "mean (us)": [210109.162, 213545.5918],
        "rank": [34, 34],
    }
)


def answers() -> dict[str, pd.DataFrame]:
    """Return HTA's frames by name."""
    found = {frame: pd.DataFrame() for frame in _NOTHING}
    found["comm_comp_overlap"] = pd.DataFrame(
        {"rank": [34], "comp_comm_overlap_pctg": [float("nan")]}
    )
    found["profiler_steps"] = pd.DataFrame({"step": [551]})
    found["cpu_user_annotation_breakdown"] = _ANNOTATIONS
    return found
