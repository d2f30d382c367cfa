"""Writes the lists of README.md: every table, every analysis: ``python -m docs.generate.lists FILE``."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from docs.generate.page import cell, with_reference
from hta_sql.library.objects import load_library

TABLES = "<!-- tables: made by python -m docs.generate.lists; do not edit below -->"
ANALYSES = "<!-- analyses: made by python -m docs.generate.lists; do not edit below -->"


def tables() -> str:
    """List the tables with their summaries."""
    by_name = sorted(load_library().tables, key=lambda table: table.name)
    rows = [f"| `{table.name}` | {cell(table.summary)} |" for table in by_name]
    return "\n".join(["| table | one row is |", "|---|---|", *rows])


def analyses() -> str:
    """List the names of the analyses, topic by topic."""
    found = groupby(load_library().newest_by_topic(), key=lambda analysis: analysis.topic)
    rows = [
        f"| {topic} | {', '.join(f'`{analysis.base_name}`' for analysis in group)} |"
        for topic, group in found
    ]
    return "\n".join(["| topic | analyses |", "|---|---|", *rows])


def updated(text: str) -> str:
    """Replace both lists of a page."""
    return with_reference(with_reference(text, TABLES, tables()), ANALYSES, analyses())


def main(paths: list[str]) -> None:
    """Bring the files up to date."""
    for path in map(Path, paths):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
