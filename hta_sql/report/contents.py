"""What a report holds, in which order: the analyses that have a figure, and those that ask for a table.

Each gets its section by itself, in the topic of its folder; its header says the rest: :data:`~hta_sql.library.objects.REPORT`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hta_sql.charts import FIGURES
from hta_sql.library.objects import REPORT, Library, SqlObject
from hta_sql.report.headings import column_words

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

_ASKED_FOR = (
    *("step_accounting", "timeline", "idle_causes", "synchronisations", "kpis", "stragglers"),
    *("collective_waits", "what_if", "gpu_summary", "kernel_table", "operator_table"),
    *("operator_unique_args", "launching_operators", "source_lines", "roofline", "modules"),
    *("memory_curve", "memory_peaks", "live_at_peak"),
)
"""What is asked for most stands first in its topic, in this order."""

_TITLES = {
    "aten_op_kernels_and_delay": "From operator to kernel",
    "blocking_communication": "Which communication blocks",
    "cluster_overview": "Which rank is slow, in which step",
    "cluster_step_trace": "Phases of a step",
    "collective_arrivals": "Who came when to one collective",
    "comm_comp_overlap": "Communication behind computation",
    "communication_by_rank": "Communication of each rank",
    "cupti_counters_by_operator": "Hardware counters",
    "expert_load": "Balance of all-to-alls",
    "folded_stacks": "Flame graph",
    "frequent_kernel_sequences": "Kernels that follow each other",
    "gpu_kernel_types": "What GPUs do while they are busy",
    "gpu_kernels_by_name": "The longest kernels of each rank",
    "gpu_summary": "What each GPU is used for",
    "graph_kernels": "Inside of CUDA graphs",
    "kernel_table": "The kernels that cost most",
    "kernels_across_ranks": "The longest kernels",
    "kpi_trends": "Key figures, run after run",
    "kpis": "Key figures",
    "launch_histograms": "Launches and their delay",
    "launching_operators": "Who launches which kernels",
    "live_at_peak": "What is in use at the memory peak",
    "memory_by_operator": "What operators allocate",
    "memory_curve": "Memory over time",
    "memory_leaks": "Memory still held at the end",
    "memory_peaks": "Memory peaks",
    "mfu": "Model FLOPs utilisation (MFU)",
    "modules": "What modules cost",
    "operator_across_ranks": "The same operator on all ranks",
    "operator_table": "What operators cost",
    "operator_unique_args": "Operators by shape",
    "ops_by_name": "The longest operations",
    "pipeline_stages": "Stages of the pipeline",
    "potential_stragglers": "Who starts a collective last",
    "process_group_costs": "What process groups cost",
    "queue_full_time": "Full queues",
    "queue_length_series": "Queue length over time",
    "queue_length_summary": "Queue length",
    "roofline": "How far from the device's limit",
    "source_lines": "Source lines that cost most",
    "special_operators": "Calls that matter, rank by rank",
    "step_accounting": "Where a step goes",
    "step_breakdown": "What a step is spent on",
    "step_time_stats": "How long steps last",
    "straggler_metric": "The collective that is waited for most",
    "stragglers": "Who holds up the others",
    "synchronisations": "Where the host waits for the GPU",
    "timeline": "Timeline",
    "trace_diff": "Operations that differ",
    "user_annotation_breakdown": "The longest annotations",
    "utilisation_over_time": "How busy the GPUs are over time",
    "what_if": "What a step would take at best",
}
"""Headings of sections whose summary does not begin with one."""

_TITLE_CHARACTERS = 60


def title_of(analysis: SqlObject) -> str:
    """Name an analysis in few words, for people."""
    opening = analysis.summary.partition(":")[0].rstrip(".")
    name = analysis.base_name
    return _TITLES.get(name) or (
        opening if len(opening) <= _TITLE_CHARACTERS else column_words(name, None)
    )


@dataclass(frozen=True)
class Section:
    """One analysis on the page."""

    analysis: SqlObject
    has_chart: bool
    parameters: dict[str, Any] = field(default_factory=dict)
    max_ranks: int | None = None
    compares: str = ""
    has_table: bool = True

    @property
    def name(self) -> str:
        """Name of the analysis, without its version."""
        return self.analysis.base_name

    @property
    def title(self) -> str:
        """Its heading."""
        return title_of(self.analysis)


@dataclass(frozen=True)
class Topic:
    """A heading and its sections."""

    key: str
    title: str
    sections: tuple[Section, ...]


def topics(library: Library) -> list[Topic]:
    """List what a report holds."""
    known = [a for a in library.newest() if "no" not in a.report]
    chosen = [a for a in known if a.base_name in FIGURES or "table" in a.report]
    place = {name: at for at, name in enumerate(_ASKED_FOR)}
    chosen.sort(
        key=lambda a: (place.get(a.base_name, len(place)), "first" not in a.report, a.base_name)
    )
    keys = [*TOPICS, *sorted({a.topic for a in chosen} - set(TOPICS))]
    return [
        Topic(key, TOPICS.get(key, key.replace("_", " ").capitalize()), sections)
        for key in keys
        if (sections := tuple(_section(a) for a in chosen if a.topic == key))
    ]


def _section(analysis: SqlObject) -> Section:
    words = analysis.report
    found = [match for word in words if (match := REPORT.fullmatch(word))]
    return Section(
        analysis,
        has_chart=analysis.base_name in FIGURES,
        parameters={match["name"]: int(match["value"]) for match in found if match["name"]},
        max_ranks=next((int(match["ranks"]) for match in found if match["ranks"]), None),
        has_table="chart" not in words,
        compares=next((match["compares"] for match in found if match["compares"]), ""),
    )
