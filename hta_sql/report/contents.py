"""What a report holds, in which order: the analyses that have a figure, and those that ask for a table.

Each gets its section by itself, in the topic of its folder; its header says the rest: :data:`SAID`.
"""

from __future__ import annotations

import re
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

SAID = re.compile(r"first|table|chart|at most (?P<ranks>\d+) ranks|(?P<name>\w+) := (?P<value>\d+)")
"""What the line ``Report: first; chart; at most 64 ranks`` of an analysis may say: that it opens its topic,
that it has a section without a figure, or a figure without rows, that it says nothing to people above so
many ranks, and values that keep a result as small as a page needs it."""


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
    chosen = [a for a in load_library().newest() if a.base_name in FIGURES or "table" in said(a)]
    chosen.sort(key=lambda a: ("first" not in said(a), a.base_name))
    keys = [*TOPICS, *sorted({a.topic for a in chosen} - set(TOPICS))]
    return [
        Topic(key, TOPICS.get(key, key.replace("_", " ").capitalize()), sections)
        for key in keys
        if (sections := tuple(_section(a) for a in chosen if a.topic == key))
    ]


def said(analysis: SqlObject) -> list[str]:
    """List what the header of an analysis says about its section."""
    line = analysis.facts.get("Report")
    return line.split("; ") if line else []


def _section(analysis: SqlObject) -> Section:
    words = said(analysis)
    found = [match for word in words if (match := SAID.fullmatch(word))]
    return Section(
        analysis,
        has_chart=analysis.base_name in FIGURES,
        parameters={match["name"]: int(match["value"]) for match in found if match["name"]},
        max_ranks=next((int(match["ranks"]) for match in found if match["ranks"]), None),
        has_table="chart" not in words,
    )
