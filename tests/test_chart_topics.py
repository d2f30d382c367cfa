"""Tests that each figure is in the topic of its analysis, and that all figures are registered."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hta_sql import charts
from hta_sql.library.objects import load_library

FOLDER = Path(charts.__file__).parent


@pytest.mark.parametrize("name", charts.FIGURES)
def test_a_figure_stands_in_the_topic_of_its_analysis(name: str) -> None:
    """The module of a figure is ``hta_sql.charts.<topic>`` or a module in that package."""
    topic = charts.FIGURES[name].__module__.split(".")[2]
    assert topic == load_library().find(name).topic


def test_every_decorated_figure_is_registered() -> None:
    """Every decorated figure is registered, which requires that its module is imported."""
    decorated = {
        node.name
        for path in FOLDER.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "figure" for d in node.decorator_list)
    }
    assert decorated == set(charts.FIGURES)
