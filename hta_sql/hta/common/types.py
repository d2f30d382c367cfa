"""Kinds of devices and copies, and patterns of names and categories, as HTA's users know them.

Patterns are for symbol tables: ``symbols.get_symbol_ids(KERNEL_CATEGORY_PATTERN)``. They match the
categories of :meth:`hta_sql.hta.common.trace.Trace.get_trace` and of older traces. What a kernel *is*
does not depend on them: that stands in ``sql/ingest/kernel_classes.csv``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

import pandas as pd

from hta_sql.errors import ParameterError

__all__ = [
    "ALL_CATEGORY_PATTERN",
    "CPU_AND_GPU_EVENTS_CATEGORY_PATTERN",
    "CPU_EVENTS_CATEGORY_PATTERN",
    "CPU_OP_CATEGORY_PATTERN",
    "CUDA_SYNC_PATTERN",
    "DEVICE_RUNTIME_CATEGORY_PATTERN",
    "GPU_EVENT_CATEGORY_PATTERN",
    "KERNEL_CATEGORY_PATTERN",
    "KERNEL_LAUNCH_CATEGORY_PATTERN",
    "MEMCPY_TYPE_TO_STR",
    "MEMORY_CATEGORY_PATTERN",
    "PYTHON_FUNCTION_PATTERN",
    "CommunicateKernelGroupingPattern",
    "ComputeKernelGroupingPattern",
    "DeviceType",
    "GroupingPattern",
    "MTIAMemoryKernelGroupingPattern",
    "MemcpyType",
    "MemoryKernelGroupingPattern",
    "ProfilerStepGroupingPattern",
    "common_grouping_patterns",
    "infer_device_type",
    "to_grouping_pattern",
]

HOST_STREAM = -1


class DeviceType(Enum):
    """Where an event ran."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


class MemcpyType(Enum):
    """Which way a copy goes."""

    DTOD = 0
    DTOH = 1
    HTOD = 2
    UNKNOWN = 3


MEMCPY_TYPE_TO_STR = {
    MemcpyType.DTOD: "memcpy_dtod",
    MemcpyType.DTOH: "memcpy_dtoh",
    MemcpyType.HTOD: "memcpy_htod",
    MemcpyType.UNKNOWN: "memcpy_type_unknown",
}


@dataclass(unsafe_hash=True)
class GroupingPattern:
    """An expression that names match from their start on, or must not match.

    Attributes:
        pattern: The expression.
        inverse_match: Whether it must not match.
        group_name: What it stands for.
    """

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = ""

    def match(self, name: str) -> bool:
        """Say whether a name is of the group."""
        return (self.pattern.match(name) is None) is self.inverse_match


def to_grouping_pattern(
    pattern: str | list[str] | re.Pattern[str] | GroupingPattern,
    group_name: str | None = None,
    inverse_match: bool | None = None,
) -> GroupingPattern:
    """Make a pattern.

    Args:
        pattern: An expression, or several of which one has to match; a GroupingPattern stays as it
            is.
        group_name: What it stands for.
        inverse_match: Whether it must not match.

    Raises:
        ParameterError: It is nothing of that.
    """
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, list):
        pattern = "|".join(f"({one})" for one in pattern)
    if not isinstance(pattern, str | re.Pattern):
        raise ParameterError(f"pattern is an expression or a list of them, not {pattern!r}.")
    return GroupingPattern(re.compile(pattern), bool(inverse_match), group_name or "")


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Say where the events of a frame ran, by their streams; UNKNOWN for a frame of both or none."""
    streams = df["stream"] if "stream" in df else pd.Series(dtype=int)
    if len(streams) and (streams == HOST_STREAM).all():
        return DeviceType.CPU
    return DeviceType.GPU if len(streams) and (streams >= 0).all() else DeviceType.UNKNOWN


def _pattern(expression: str, name: str, *, inverse: bool = False) -> GroupingPattern:
    return GroupingPattern(re.compile(expression), inverse, name)


_OPERATORS = r"cpu_op$|user_annotation$"
_RUNTIME = r"\w+_(runtime|driver)$"
_COPIES = r"gpu_mem\w+$|mtia_ccp_events$"
_KERNELS = rf"kernel$|{_COPIES}"
_SYNC = r"cuda_sync$"
_MEMORY = r"(hip)?Memcpy|(hip)?Memset|dma"

ProfilerStepGroupingPattern = _pattern(r"ProfilerStep#(\d+)", "Profiler Step")
MemoryKernelGroupingPattern = _pattern(_MEMORY, "Memory")
MTIAMemoryKernelGroupingPattern = _pattern(r"dma", "MTIA Memory")
CommunicateKernelGroupingPattern = _pattern(r"nccl|rccl|hccl", "Communicate")
ComputeKernelGroupingPattern = _pattern(
    rf"nccl|rccl|hccl|{_MEMORY}|.*Sync|.*LaunchKernel|runFunction", "Compute", inverse=True
)
KERNEL_CATEGORY_PATTERN = _pattern(_KERNELS, "GPU Kernels")
KERNEL_LAUNCH_CATEGORY_PATTERN = _pattern(r"(cuda|cu|hip)\w*Launch\w*|runFunction", "Kernel Launch")
CPU_OP_CATEGORY_PATTERN = _pattern(_OPERATORS, "CPU Ops")
DEVICE_RUNTIME_CATEGORY_PATTERN = _pattern(_RUNTIME, "Device Runtimes")
MEMORY_CATEGORY_PATTERN = _pattern(_COPIES, "Memory")
GPU_EVENT_CATEGORY_PATTERN = _pattern(rf"{_KERNELS}|{_SYNC}", "GPU Events")
CPU_EVENTS_CATEGORY_PATTERN = _pattern(rf"{_OPERATORS}|{_RUNTIME}", "CPU Events")
CPU_AND_GPU_EVENTS_CATEGORY_PATTERN = _pattern(
    rf"{_OPERATORS}|{_RUNTIME}|{_KERNELS}|{_SYNC}", "CPU/GPU Events"
)
PYTHON_FUNCTION_PATTERN = _pattern(r"python_function$", "Python Functions")
ALL_CATEGORY_PATTERN = _pattern(r".*", "All")
CUDA_SYNC_PATTERN = _pattern(_SYNC, "CUDA Sync")

common_grouping_patterns = {
    "memory_kernels": MemoryKernelGroupingPattern,
    "compute_kernels": ComputeKernelGroupingPattern,
    "communicate_kernels": CommunicateKernelGroupingPattern,
}
