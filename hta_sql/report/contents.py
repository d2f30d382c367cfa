"""The sections of a report: analyses that have a figure, or whose header requests a table.

A section belongs to the topic named by the folder of its analysis. The header of the analysis
states its title, its position and other properties: :data:`~hta_sql.library.header.REPORT`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hta_sql.charts import figure_of
from hta_sql.library.header import REPORT
from hta_sql.library.objects import Library, SqlObject

TOPICS = {
    "timeline": "Where the time goes",
    "serving": "Serving",
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
"""Folder in sql/analyses ─▶ heading, in page order; other folders follow."""


@dataclass(frozen=True)
class Section:
    """One analysis on the page.

    Attributes:
        analysis: The analysis.
        position: Position in the topic; infinity if the analysis's header states none.
        is_main: Whether it is on the page even if nothing points to it: it has a position, or is the
            user's own analysis.
        has_chart: Whether the analysis has a figure.
        has_table: Whether its rows are shown.
        parameters: Parameter values that keep the result small.
        max_ranks: Number of ranks above which the section is omitted.
        compares: ``ranks`` or ``runs``, if the analysis needs more than one of them.
        relations: Tables or analyses; without rows in any of them, the analysis has no rows either.
            Empty if unknown.
        needed: A column, and the sentence to show if the column is NULL in every row; or empty.
    """

    analysis: SqlObject
    position: float
    is_main: bool
    has_chart: bool
    has_table: bool
    parameters: dict[str, Any]
    max_ranks: int | None
    compares: str
    relations: tuple[str, ...]
    needed: tuple[str, str]

    @property
    def name(self) -> str:
        """Name of the analysis, without its version."""
        return self.analysis.base_name

    @property
    def title(self) -> str:
        """Heading of the section."""
        return self.analysis.title


@dataclass(frozen=True)
class Topic:
    """A heading and its sections."""

    key: str
    title: str
    sections: tuple[Section, ...]


def topics(library: Library) -> list[Topic]:
    """Return the topics of a report with their sections, in page order."""
    known = [a for a in library.newest() if "no" not in a.report]
    shipped = {a.path for a in library.base.newest()}
    sections = [
        _section(a, is_own=a.path not in shipped)
        for a in known
        if figure_of(a) or "table" in a.report
    ]
    sections.sort(key=lambda section: (section.position, section.name))
    keys = [*TOPICS, *sorted({s.analysis.topic for s in sections} - set(TOPICS))]
    return [
        Topic(key, TOPICS.get(key, key.replace("_", " ").capitalize()), of_topic)
        for key in keys
        if (of_topic := tuple(s for s in sections if s.analysis.topic == key))
    ]


def _section(analysis: SqlObject, *, is_own: bool) -> Section:
    words = analysis.report
    found = [match for word in words if (match := REPORT.fullmatch(word))]

    def stated(group: str) -> str | None:
        return next((match[group] for match in found if match[group]), None)

    ranks, position = stated("ranks"), float(stated("position") or math.inf)
    return Section(
        analysis,
        position=position,
        is_main=is_own or math.isfinite(position),
        has_chart=figure_of(analysis) is not None,
        parameters={match["name"]: int(match["value"]) for match in found if match["name"]},
        max_ranks=int(ranks) if ranks else None,
        has_table="chart" not in words,
        compares=stated("compares") or "",
        relations=tuple((stated("relations") or "").replace(" or ", " ").split()),
        needed=analysis.needed,
    )
