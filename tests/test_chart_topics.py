"""Tests that each figure is in the topic of its analysis, and that all charts are registered."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hta_sql import charts
from hta_sql.charts.drawing.palette import named_parts
from hta_sql.library.chart_header import chart_of, has_chart
from hta_sql.library.objects import load_library

FOLDER = Path(charts.__file__).parent


DECLARED = {about.base_name: about for about in load_library().newest() if has_chart(about)}


@pytest.mark.parametrize("name", sorted(charts.FIGURES.keys() - DECLARED.keys()))
def test_a_figure_stands_in_the_topic_of_its_analysis(name: str) -> None:
    """The module of a figure is ``hta_sql.charts.<topic>`` or a module in that package."""
    topic = charts.FIGURES[name].__module__.split(".")[2]
    assert topic == load_library().find(name).topic


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_chart_is_well_formed(name: str) -> None:
    """Every declaration in a shipped analysis has known keys, columns and colors."""
    chart = chart_of(DECLARED[name])
    for parts in (chart.get("parts", {}), *chart.get("panels", {}).values()):
        assert named_parts(parts).keys() == parts.keys()


def test_every_figure_is_registered_once() -> None:
    """A chart is declared or drawn by a decorated function, whose module is imported."""
    decorated = {
        node.name
        for path in FOLDER.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "figure" for d in node.decorator_list)
    }
    assert decorated.isdisjoint(DECLARED)
    assert decorated | DECLARED.keys() == charts.FIGURES.keys()
