"""What a report holds, in which order: the analyses that have a figure, and a few tables.

A new analysis with a figure gets its section by itself, in the topic of its folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hta_sql.charts import FIGURES
from hta_sql.library.objects import SqlObject, load_library

TOPICS = {
    "timeline": "Where the time goes",
    "communication": "Communication",
    "compare": "Ranks and runs compared",
    "kernels": "Kernels",
    "launch": "Launches",
    "path": "Critical path",
    "operators": "Operators and annotations",
    "modules": "Modules",
    "memory": "Memory",
    "counters": "Counters",
    "health": "The traces themselves",
}
"""Folder under sql/analyses ─▶ heading, in the order of the page; other folders follow."""

FIRST = (
    *("kpis", "temporal_breakdown", "step_breakdown", "comm_comp_overlap"),
    *("gpu_summary", "gpu_kernel_types", "kernels_across_ranks"),
    *("memory_peaks", "memory_curve"),
)
"""These open their topics; the others follow by name."""

TABLES = frozenset(
    {
        *("kpis", "memory_leaks", "memory_peaks", "mfu", "rank_health", "step_time_stats"),
        "synchronisations",
    }
)
"""Analyses without a figure that have a section all the same."""

LEFT_OUT = {"top_costs", "findings", "advice"}
"""What stands at the top of the page."""

PARAMETERS: dict[str, dict[str, Any]] = {"gpu_kernels_by_name": {"num_kernels": 10}}
"""Values that keep a result as small as a page needs it."""

MAX_RANKS = {
    "gpu_kernels_by_name": 64,
    "kernel_table": 64,
    "aten_op_kernels_and_delay": 64,
    "frequent_kernel_sequences": 64,
    "operator_table": 64,
    "roofline": 64,
    "mfu": 64,
    "source_lines": 64,
    "modules": 64,
    "folded_stacks": 16,
    "memory_bandwidth_series": 8,
    "memory_curve": 64,
    "live_at_peak": 64,
    "memory_by_operator": 64,
    "memory_leaks": 64,
    "queue_length_series": 8,
}
"""Where an analysis says nothing to people above so many ranks; another one stands for it."""

CHART_ONLY = frozenset(
    {
        *("launch_histograms", "memory_bandwidth_series", "memory_curve", "queue_length_series"),
        *("utilisation_over_time", "folded_stacks"),
    }
)
"""Rows that are points of a curve: nobody reads them one by one."""


@dataclass(frozen=True)
class Section:
    """One analysis on the page."""

    analysis: SqlObject
    has_chart: bool
    parameters: dict[str, Any] = field(default_factory=dict)
    max_ranks: int | None = None
    has_table: bool = True

    @property
    def name(self) -> str:
        """Name of the analysis, without its version."""
        return self.analysis.base_name


@dataclass(frozen=True)
class Topic:
    """A heading and its sections."""

    key: str
    title: str
    sections: tuple[Section, ...]


def topics() -> list[Topic]:
    """List what a report holds."""
    chosen = [
        analysis
        for analysis in load_library().newest()
        if analysis.base_name in {*FIGURES, *TABLES} and analysis.base_name not in LEFT_OUT
    ]
    chosen.sort(key=lambda a: (a.base_name not in FIRST, a.base_name))
    keys = [*TOPICS, *sorted({a.topic for a in chosen} - set(TOPICS))]
    return [
        Topic(key, TOPICS.get(key, key.replace("_", " ").capitalize()), sections)
        for key in keys
        if (sections := tuple(_section(a) for a in chosen if a.topic == key))
    ]


def _section(analysis: SqlObject) -> Section:
    name = analysis.base_name
    return Section(
        analysis,
        has_chart=name in FIGURES,
        parameters=PARAMETERS.get(name, {}),
        max_ranks=MAX_RANKS.get(name),
        has_table=name not in CHART_ONLY,
    )
