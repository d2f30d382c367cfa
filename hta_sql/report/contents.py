"""What a report holds, in which order: the analyses that have a figure, and those that ask for a table.

Each gets its section by itself, in the topic of its folder; its header says the rest: :data:`~hta_sql.library.objects.REPORT`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hta_sql.charts import FIGURES
from hta_sql.library.objects import REPORT, Library, SqlObject

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


def topics(library: Library) -> list[Topic]:
    """List what a report holds."""
    chosen = [a for a in library.newest() if a.base_name in FIGURES or "table" in a.report]
    chosen.sort(key=lambda a: ("first" not in a.report, a.base_name))
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
    )
