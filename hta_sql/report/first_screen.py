"""The analyses that the first screen reads by name, and the questions that it links to.

Sections need no entry here: they are defined by the headers of their analyses. The analyses here
are named because sentences, tiles and cards use their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from markupsafe import Markup

from hta_sql.charts.drawing.palette import named_parts
from hta_sql.library.chart_header import chart_of
from hta_sql.library.objects import SqlObject, load_library
from hta_sql.report.links import named_in
from hta_sql.report.reasons import shortly
from hta_sql.report.rendering import render
from hta_sql.results.result import Result


@dataclass(frozen=True)
class FirstScreen:
    """The results of the first screen; each field but ``failures`` has the name of its analysis.

    Attributes:
        failures: Analysis ─▶ why it failed; its result has no rows.
    """

    jobs: Result
    rank_health: Result
    kpis: Result
    step_accounting: Result
    host_accounting: Result
    stragglers: Result
    advice: Result
    top_costs: Result
    findings: Result
    serving: Result
    serving_kinds: Result
    hang: Result
    failures: Mapping[str, str]

    def failure_of(self, result: Result) -> str:
        """Return why the analysis of a result failed, or an empty string."""
        return self.failures.get(analysis_of(result).base_name, "")


ANALYSES = tuple(field.name for field in fields(FirstScreen) if field.name != "failures")
"""Names of the analyses of the first screen."""

PANELS = ("advice", "top_costs")
"""Analyses with a panel of their own, in the order of the page."""

NEEDED = {"jobs", "rank_health", "step_accounting"}
"""Analyses without which no sentence about a step is certain."""

SUMMARIZED = {"cluster_step_trace": "their steps", "links": "what they transfer"}
"""Analysis ─▶ what it shows about ranks that have only summaries."""

RECORDED = {"hang": "Flight Recorder dumps", "snapshot_peak": "memory snapshots"}
"""Analysis ─▶ the files that it reads, which have no steps."""

DEVICE_PARTS, HOST_PARTS = (
    named_parts(chart_of(load_library().find(name))["parts"])
    for name in ("step_accounting", "host_accounting")
)
"""Column of an analysis ─▶ label and color, in stacking order."""

STEP_PARTS = DEVICE_PARTS | HOST_PARTS
"""Parts of a step: those of the device, and for a rank without device activity those of the host."""

QUESTIONS = {
    "Where does a step go?": "step_accounting",
    "Where does it go on the host?": "host_accounting",
    "Why is my GPU idle?": "idle_causes",
    "Where does the host wait for the GPU?": "synchronizations",
    "Which operator costs most?": "operator_table",
    "With which shapes?": "operator_unique_args",
    "From which line?": "source_lines",
    "Which operators launch which kernels?": "launching_operators",
    "Are the tensor cores used?": "gpu_summary",
    "How far from the device's limit?": "roofline",
    "Is communication overlapped?": "comm_comp_overlap",
    "Which step is an outlier?": "step_time_stats",
    "Where is the memory peak?": "memory_peaks",
    "Who allocated what is in use there?": "live_at_peak",
    "Which rank is late, and why?": "stragglers",
    "Does it wait or transfer?": "step_accounting",
    "What should I do next?": "advice",
}
"""Question, as on the documentation's page of questions ─▶ analysis that answers it."""

RECORDED_QUESTIONS = {
    "What hangs, and which rank holds it up?": "hang",
    "What did each rank do last?": "collective_history",
    "What is in use at the memory peak?": "snapshot_peak",
}
"""Question ─▶ analysis that answers it from files without events."""

NEEDS = {"Does it wait or transfer?": "collective_waits"}
"""Question ─▶ another analysis that its answer depends on."""

LINKED = frozenset(
    {*QUESTIONS.values(), *RECORDED_QUESTIONS.values(), *NEEDS.values(), *SUMMARIZED, *RECORDED}
)
"""Analyses to which the first screen links on every page."""

NAMING = ("next_analysis", "message", "remedy", "limits", "verdict_reason")
"""Columns of the results of the first screen whose texts name other analyses."""


def named_by(first: FirstScreen) -> set[str]:
    """Return the analyses that the texts of the first screen name, such as a recommendation's next one."""
    tables = [getattr(first, name).arrow() for name in ANALYSES]
    texts = {
        text
        for table in tables
        for column in NAMING
        if column in table.column_names
        for text in table.column(column).to_pylist()
        if text
    }
    found = {match["name"] for text in texts for match in named_in(text)}
    return found | {text for text in texts if text.isidentifier()}


def accounted(first: FirstScreen) -> list[dict[str, Any]]:
    """Return the parts of each step: device parts, or for ranks without a device those of the host.

    Each row has the columns ``run``, ``rank``, ``step``, ``step_ns``, ``wait_ns`` (exposed wait for
    other ranks) and all of :data:`STEP_PARTS`; parts of the other kind are None.
    """
    hosts = {(row["run"], row["rank"], row["step"]): row for row in first.host_accounting.records()}
    rows = []
    for row in first.step_accounting.records():
        keys = {name: row[name] for name in ("run", "rank", "step", "step_ns")}
        host = hosts.get((row["run"], row["rank"], row["step"])) if is_on_host(row) else None
        known = {name: host[name] for name in HOST_PARTS} if host else row
        parts = {name: known.get(name) for name in STEP_PARTS}
        rows.append({**keys, "wait_ns": row["exposed_wait_ns"], **parts})
    return rows


def is_on_host(row: Mapping[str, Any]) -> bool:
    """Return whether a row of ``step_accounting`` or of :func:`accounted` has no device parts."""
    return row["compute_ns"] is None


def analysis_of(result: Result) -> SqlObject:
    """Return the analysis of a result.

    Raises:
        ValueError: The result is from a query.
    """
    if result.analysis is None:
        raise ValueError("The first screen shows results of analyses, not of queries.")
    return result.analysis


def questions_markup(
    sections: set[str], reasons: Mapping[str, str], *, has_events: bool = True
) -> Markup:
    """Render the questions, each with a link to its answer or the reason why there is none.

    Args:
        sections: Analyses with a section on the page.
        reasons: Analysis ─▶ reason why it has no section.
        has_events: Whether the traces have events; without any, the questions are one line.
    """
    if not has_events:
        asked = [(question, answer, "") for question, answer in RECORDED_QUESTIONS.items()]
        items = [item for item in asked if item[1] in sections]
        return render("questions", items=items, need_events=len(QUESTIONS) - 1)
    items = []
    for question, answer in QUESTIONS.items():
        needed = NEEDS.get(question, answer)
        if {answer, needed} <= sections or answer == "advice":
            items.append((question, answer, ""))
        else:
            why = reasons.get(needed if answer in sections else answer, "")
            items.append((question, "", shortly(why)))
    return render("questions", items=_by_reason(items), need_events=0)


def _by_reason(items: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Join questions without an answer that have the same reason, which is then stated once."""
    answered = [item for item in items if item[1]]
    unanswered: dict[str, list[str]] = {}
    for question, answer, why in items:
        if not answer:
            unanswered.setdefault(why, []).append(question)
    return [*answered, *((" ".join(asked), "", why) for why, asked in unanswered.items())]
