"""Identifies MindSpore's cluster data files, and groups them by rank."""

from __future__ import annotations

import re
from dataclasses import dataclass

import fsspec

SUPPORTED = (
    "step_trace_raw_N_detail_time.csv",
    "ascend_cluster_analyse_MODE_STAGES_SIZE_N.csv",
    "hccl_raw_N.csv",
    "flops_summary_N.json",
    "memory_usage_summary_N.json",
)
"""Names of supported files; of the files that exist, the first represents its rank."""

_NAMES = {
    "step_trace": re.compile(r"^step_trace_raw_(?P<rank>\d+)_detail_time\.csv$"),
    "analysis": re.compile(
        r"^(?:ascend|gpu)_cluster_analyse_(?P<mode>[a-z]+-parallel)_(?P<stages>\d+)"
        r"_(?P<size>\d+)_(?P<rank>\d+)\.csv$"
    ),
    "hccl": re.compile(r"^hccl_raw_(?P<rank>\d+)\.csv$"),
    "flops": re.compile(r"^flops_summary_(?P<rank>\d+)\.json$"),
    "memory": re.compile(r"^memory_usage_summary_(?P<rank>\d+)\.json$"),
}

_UNSUPPORTED = re.compile(
    r"^(?:aicore_intermediate_\d+_|aicpu_intermediate_\d+|ascend_timeline_(?:display|summary)_\d+"
    r"|gpu_timeline_(?:display|summary)_\d+|cpu_op_|gpu_op_|dataset_iterator_profiling_\d+"
    r"|device_queue_profiling_\d+|dynamic_shape_info_\d+|flops_scope_\d+|flops_\d+\.txt"
    r"|framework_raw_\d+|memory_usage_\d+\.pb|minddata_|op_intermediate_|output_timeline_data_\d+"
    r"|parallel_strategy_\d+|pipeline_profiling_\d+|step_trace_point_info_\d+|hccl_info)"
)
"""Other files of MindSpore's profiler, which are not supported."""


@dataclass(frozen=True)
class ClusterFile:
    """One file of cluster data."""

    path: str
    folder: str
    kind: str
    """step_trace, analysis, hccl, flops or memory."""
    rank: int
    parallel_mode: str | None = None
    stage_count: int | None = None
    device_count: int | None = None


def cluster_file(path: str) -> ClusterFile | None:
    """Parse the name of a cluster data file; None for other or unsupported files."""
    folder, _, name = path.rpartition("/")
    for kind, pattern in _NAMES.items():
        if match := pattern.match(name):
            found = match.groupdict()
            if kind != "analysis":
                return ClusterFile(path, folder, kind, int(found["rank"]))
            return ClusterFile(
                path,
                folder,
                kind,
                int(found["rank"]),
                found["mode"],
                int(found["stages"]),
                int(found["size"]),
            )
    return None


def is_unsupported(path: str) -> bool:
    """Return whether a path is an unsupported file of MindSpore's profiler."""
    return bool(_UNSUPPORTED.match(path.rpartition("/")[2]))


def parts_of_rank(path: str) -> list[ClusterFile]:
    """List all files of the rank that a file represents, in the order of SUPPORTED."""
    one = cluster_file(path)
    if one is None:
        return []
    fs, root = fsspec.url_to_fs(path)
    folder = root.rpartition("/")[0]
    beside = {str(name).rpartition("/")[2] for name in fs.ls(folder or ".", detail=False)}
    prefix = path[: len(path) - len(path.rpartition("/")[2])]
    files = [cluster_file(prefix + name) for name in sorted(beside)]
    mine = [file for file in files if file and file.rank == one.rank]
    kinds = list(_NAMES)
    return sorted(mine, key=lambda file: (kinds.index(file.kind), file.path))
