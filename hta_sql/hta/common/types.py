"""Define symbol groups by pattern, for queries on a symbol table, like in HTA.

The patterns match the categories of :meth:`hta_sql.hta.common.trace.Trace.get_trace` and of older
traces. They do not affect the classes of kernels, which ``sql/ingest/kernel_classes.csv`` defines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "CPU_EVENTS_CATEGORY_PATTERN",
    "KERNEL_CATEGORY_PATTERN",
    "KERNEL_LAUNCH_CATEGORY_PATTERN",
    "GroupingPattern",
    "MemoryKernelGroupingPattern",
    "ProfilerStepGroupingPattern",
]

HOST_STREAM = -1


@dataclass(unsafe_hash=True)
class GroupingPattern:
    """A regular expression that the start of a name must match (or must not match).

    Attributes:
        pattern: The expression.
        inverse_match: Whether names must not match.
        group_name: Name of the group.
    """

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = ""

    def match(self, name: str) -> bool:
        """Return whether a name belongs to the group."""
        return (self.pattern.match(name) is None) is self.inverse_match


def _pattern(expression: str, name: str) -> GroupingPattern:
    return GroupingPattern(re.compile(expression), group_name=name)


ProfilerStepGroupingPattern = _pattern(r"ProfilerStep#(\d+)", "Profiler Step")
MemoryKernelGroupingPattern = _pattern(r"(hip)?Memcpy|(hip)?Memset|dma", "Memory")
KERNEL_CATEGORY_PATTERN = _pattern(r"(kernel|gpu_mem\w+|mtia_ccp_events)$", "GPU Kernels")
KERNEL_LAUNCH_CATEGORY_PATTERN = _pattern(r"(cuda|cu|hip)\w*Launch\w*|runFunction", "Kernel Launch")
CPU_EVENTS_CATEGORY_PATTERN = _pattern(
    r"(cpu_op|user_annotation|\w+_(runtime|driver))$", "CPU Events"
)
