"""Write docs/analyses.md from sql/analyses and sql/lib: ``python -m docs.generate.analyses FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from docs.generate.page import cell, prose, with_reference
from docs.generate.schema import column_row
from hta_sql.library.objects import SqlObject, load_library

BEGIN = "<!-- reference: made by python -m docs.generate.analyses; do not edit below -->"


def reference() -> str:
    """List the analyses, then describe every analysis and every shared macro, by topic."""
    library = load_library()
    by_topic = {
        topic: list(analyses)
        for topic, analyses in groupby(library.newest_by_topic(), key=lambda a: a.topic)
    }
    lines = ["| topic | analyses |", "|---|---|"]
    for topic, analyses in by_topic.items():
        names = ", ".join(f"[`{a.base_name}`](#{a.name})" for a in analyses)
        lines.append(f"| [{topic}](#{topic}) | {names} |")
    lines.append("")
    for topic, analyses in by_topic.items():
        lines += [f"## {topic}", ""]
        for analysis in analyses:
            lines += _object(analysis)
    shared = sorted(library.macros, key=lambda macro: (macro.topic, macro.name))
    for topic, macros in groupby(shared, key=lambda macro: macro.topic):
        lines += [f"## lib/{topic}: shared macros", ""]
        lines += [line for macro in macros for line in _object(macro)]
    return "\n".join(lines)


def _object(about: SqlObject) -> Iterator[str]:
    yield f"### {about.name}"
    yield ""
    if "Title" in about.facts:
        yield f"**{about.title}**"
        yield ""
    yield from prose(about.full_description).splitlines()
    yield ""
    facts = [
        f"{key}: {value}"
        for key, value in about.facts.items()
        if key not in ("Title", "Status", "Report")
    ]
    if facts:
        yield from (f"- {fact}" for fact in facts)
        yield ""
    if about.parameters:
        yield "| parameter | type | default | meaning |"
        yield "|---|---|---|---|"
        for p in about.parameters:
            yield f"| `{p.name}` | {p.type or ''} | {cell(p.default)} | {cell(p.doc)} |"
        yield ""
    yield f"| {'returns' if about.is_scalar else 'column'} | type | unit | meaning |"
    yield "|---|---|---|---|"
    yield from map(column_row, about.columns)
    yield ""


def main(paths: list[str]) -> None:
    """Rewrite the generated part of each file."""
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_reference(text, BEGIN, reference()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
