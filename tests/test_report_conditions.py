"""Tests of report sections that are skipped because a relation that they need has no rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from hta_sql.authoring.golden_engine import GoldenEngine
from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from hta_sql.report.contents import Section, topics
from tests.golden_cases import TRACES, all_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = load_library()
SECTIONS = {s.name: s for topic in topics(LIBRARY) for s in topic.sections if s.relations}

CASES = {
    case.traces: case
    for case in all_cases()
    if case.path.stem.rpartition("_v")[0] in SECTIONS or case.traces.startswith("every_table")
}
"""One case for each ``traces`` line that is used to test these sections."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoldenEngine]:
    """Return the engine that runs all cases."""
    folder = tmp_path_factory.mktemp("golden")
    cases = sorted(CASES.values(), key=lambda case: case.traces)
    with closing(GoldenEngine(folder, LIBRARY, cases, TRACES)) as engine:
        yield engine


def _has_rows(engine: GoldenEngine, traces: str, relation: str) -> bool:
    _, rows = engine.ask(replace(CASES[traces], call=sqltext.has_rows(relation)))
    return bool(rows[0][0])


@pytest.mark.parametrize("traces", sorted(CASES))
def test_a_section_has_rows_only_if_its_relation_has_rows(
    traces: str, engine: GoldenEngine
) -> None:
    """A section whose relations have no rows has no rows either, so skipping it loses nothing."""

    @cache
    def has_rows(relation: str) -> bool:
        return _has_rows(engine, traces, relation)

    def is_allowed(section: Section) -> bool:
        return any(has_rows(relation) for relation in section.relations)

    computed = [
        section
        for section in SECTIONS.values()
        if all(parameter.default for parameter in section.analysis.parameters)
        and not is_allowed(section)
    ]
    shown = [s.name for s in computed if _has_rows(engine, traces, f"{s.analysis.name}()")]
    assert shown == []


def test_relations_of_sections_are_tables_or_analyses() -> None:
    """Sections refer to existing relations; others would fail only when a report is written."""
    known = {about.base_name for about in (*LIBRARY.tables, *LIBRARY.analyses)}
    assert {"hang", "memory_curve", "serving_roofline"} <= SECTIONS.keys()
    for section in SECTIONS.values():
        assert known.issuperset(section.relations), section.name
