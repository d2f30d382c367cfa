"""Write docs/analyses.md and a page per topic: ``python -m docs.generate.analyses docs/analyses.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from docs.generate.page import cell, prose, with_reference
from docs.generate.schema import column_row
from hta_sql.library.header import CHART
from hta_sql.library.objects import SqlObject, load_library

BEGIN = "<!-- reference: made by python -m docs.generate.analyses; do not edit below -->"


def reference() -> str:
    """List the topics with links to their analyses and shared macros."""
    lines = ["| topic | analyses |", "|---|---|"]
    for topic, analyses in _by_topic(load_library().newest_by_topic()).items():
        names = ", ".join(f"[`{a.base_name}`](analyses/{topic}.md#{a.name})" for a in analyses)
        lines.append(f"| [{topic}](analyses/{topic}.md) | {names} |")
    lines += [
        "",
        "The macros that analyses share, for queries of your own, are in the schema `lib`:",
        "",
    ]
    shared = ", ".join(f"[{topic}](analyses/lib_{topic}.md)" for topic in _by_topic(_macros()))
    return "\n".join([*lines, f"{shared}."])


def pages() -> dict[str, str]:
    """Return the page of each topic by file name: its analyses, or its shared macros."""
    analyses = _by_topic(load_library().newest_by_topic())
    macros = _by_topic(_macros())
    return {f"{topic}.md": _page(topic, objects) for topic, objects in analyses.items()} | {
        f"lib_{topic}.md": _page(f"lib/{topic}: shared macros", objects)
        for topic, objects in macros.items()
    }


def _macros() -> list[SqlObject]:
    return sorted(load_library().macros, key=lambda macro: (macro.topic, macro.name))


def _by_topic(objects: Sequence[SqlObject]) -> dict[str, list[SqlObject]]:
    return {topic: list(group) for topic, group in groupby(objects, key=lambda o: o.topic)}


def _page(heading: str, objects: list[SqlObject]) -> str:
    lines = [f"# {heading}", "", BEGIN, ""]
    lines += [line for about in objects for line in _object(about)]
    return "\n".join(lines)


def _object(about: SqlObject) -> Iterator[str]:
    yield f"## {about.name}"
    yield ""
    if "Title" in about.facts:
        yield f"**{about.title}**"
        yield ""
    yield from prose(about.full_description).splitlines()
    yield ""
    facts = [
        f"{key}: {value}"
        for key, value in about.facts.items()
        if key not in ("Title", "Status", "Report", CHART)
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


def main(page: Path) -> None:
    """Rewrite the generated part of the page, and the folder of the same name next to it."""
    text = page.read_text(encoding="utf-8")
    page.write_text(with_reference(text, BEGIN, reference()), encoding="utf-8")
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    written = pages()
    for old in folder.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
