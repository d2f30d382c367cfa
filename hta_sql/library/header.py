"""Parses the header comment of a .sql file: prose and facts, such as ``Needs: …``."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FACT = re.compile(
    r"^(Title|Status|Since|Reference|Needs|Scope|Materialized|Changed|Drawn from|Ranks|Report|Shown|Also): (.+)$"
)

TITLE_CHARACTERS = 60
"""Maximum length of a title, which is used as a heading and in a side bar."""

REPORT = re.compile(
    r"no|first (?P<position>\d+)|table|chart|of several (?P<compares>ranks|runs)|at most (?P<ranks>\d+) ranks"
    r"|if (?P<relations>\w+(?: or \w+)*)"
    r"|without (?P<column>\w+): (?P<sentence>.+)|(?P<name>\w+) := (?P<value>\d+)"
)
"""Syntax of one part of the line ``Report: first 2; chart; at most 64 ranks``.

- ``no``: the analysis has no section.
- ``first N``: its section is the Nth of its topic. Sections without a position follow, by name; a
  page has them only if something about the job names them.
- ``table``: the analysis has a section although it has no chart.
- ``chart``: its section has the chart only, no rows.
- ``of several ranks`` or ``of several runs``: it compares ranks or runs and needs several.
- ``at most N ranks``: with more ranks the section is omitted as unreadable.
- ``if RELATION`` or ``if RELATION or RELATION``: the analysis is not run unless one of these
  tables or analyses has rows, because it would have none either.
- ``without COLUMN: SENTENCE``: if the column is NULL in every row, the page shows the sentence.
- ``parameter := N``: a value that keeps the result small.
"""


CHART = "Chart"
"""Fact whose value is TOML on the indented lines below it (:mod:`hta_sql.library.chart_header`)."""


def header_of(lines: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Split the comment lines of a header into prose and facts.

    Returns:
        The lines of prose, and the facts by name.
    """
    prose: list[str] = []
    facts: dict[str, str] = {}
    in_chart = False
    for line in (line[2:].removeprefix(" ") for line in lines):
        if in_chart and line.startswith("  "):
            facts[CHART] += f"{line[2:]}\n"
            continue
        in_chart = line == f"{CHART}:"
        if in_chart:
            facts[CHART] = ""
        elif fact := _FACT.match(line):
            facts[fact.group(1)] = fact.group(2)
        else:
            prose.append(line)
    return prose, facts
