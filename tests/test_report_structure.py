"""Tests of the report's structure: which modules read the store and name analyses."""

from __future__ import annotations

import ast
from pathlib import Path

from hta_sql import report
from hta_sql.library.objects import load_library

FOLDER = Path(report.__file__).parent
TREES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.py")}


def test_only_the_answers_are_read_from_a_store() -> None:
    """Only entry points and the module ``answers`` import the store; the others render results."""
    naming = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "trace_store" in (node.module or "")
    }
    assert naming == {"__init__", "notebook", "answers"}


def test_a_section_needs_no_entry_in_the_report() -> None:
    """Only the module ``first_screen`` contains names of analyses."""
    names = {a.base_name for a in load_library().newest() if "_" in a.base_name}
    found = {
        (name, node.value)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert {name for name, _ in found} == {"first_screen"}
