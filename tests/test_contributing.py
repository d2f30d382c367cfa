"""Tests of CONTRIBUTING.md: paths and make targets exist, and the worked examples work as shown."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from hta_sql.authoring.check import folder_problems
from hta_sql.charts.declared import draw_declared
from hta_sql.library.objects import parse_text
from hta_sql.library.sql_files import sql_root
from tests.conftest import REASONS, pytest_collection_modifyitems
from tests.drawn_marks import visible_marks
from tests.golden_cases import TRACES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

EXAMPLE = "device_copies"
"""Name of the analysis that the page adds as an example."""

CREATED = ("sql/analyses/frozen.csv", "sql/messages/kernels.csv")
"""Files that do not exist yet: the first release and the worked example create them."""

_PATH = re.compile(r"`((?:hta_sql|sql|tests|docs|native)/[^`\s]*|[A-Z]+\.md)`|\]\(([^)#:]+)\)")
_TEMPLATE = re.compile(r"<\w+>.*")
_BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def blocks(language: str, text: str = PAGE) -> list[str]:
    """Return all code blocks in a language."""
    return [code for found, code in _BLOCK.findall(text) if found == language]


def section(heading: str) -> str:
    """Return the text of the section with the given heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_path_exists() -> None:
    """Every path on the page exists, up to the first placeholder if it has one."""
    named = {code or link for code, link in _PATH.findall(PAGE)}
    assert len(named) > 50
    paths = {_TEMPLATE.sub("", path) for path in named if EXAMPLE not in path} - {*CREATED}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_every_make_target_exists() -> None:
    """Every make target that the page mentions, in a command or in the text, exists."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([\w-]+)", PAGE, re.MULTILINE))
    assert {"environment", "check", "test"} <= named
    assert named <= targets


def test_every_quoted_name_is_in_its_file() -> None:
    """Every name that is quoted with a file, such as ``TOPICS`` in contents.py, is in it."""
    named = re.findall(r"`([A-Za-z_]+)` in `([\w/]+\.py)`", PAGE)
    assert len(named) >= 4
    missing = [(n, path) for n, path in named if n not in (ROOT / path).read_text(encoding="utf-8")]
    assert missing == []


def test_the_example_analysis_passes_the_rules_and_its_golden_test(tmp_path: Path) -> None:
    """The example analysis on the page passes the rules and its golden test."""
    (analysis,), golden = blocks("sql"), blocks("text")[0]
    for path, text in {
        f"kernels/{EXAMPLE}_v1.sql": analysis,
        f"tests/kernels/{EXAMPLE}_v1.test": golden,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    traces = tmp_path / "tests" / "traces"
    traces.mkdir()
    shutil.copy(TRACES / re.findall(r"^traces: (.+)$", golden, re.MULTILINE)[0], traces)
    assert folder_problems([tmp_path]) == []
    assert f"{EXAMPLE}_v1.sql" in PAGE


def test_the_example_chart_has_the_marks_of_its_golden_test() -> None:
    """The example chart, drawn from the row in its golden test, has the stated marks."""
    analysis = parse_text(Path(f"{EXAMPLE}_v1.sql"), blocks("sql")[0])
    row = {"run": "run", "rank": 0, "name": "Memcpy DtoH", "copy_ns": 15_000, "copy_count": 1}
    assert visible_marks(draw_declared(analysis, pd.DataFrame([row])))["rect"] == 1
    assert "Drawn: 1 rect." in blocks("text")[0]


def test_the_example_message_has_the_sentence_on_the_page() -> None:
    """The example CSV line, filled with the example values, gives the sentence on the page."""
    text = section("Add a message")
    (line,), sentence = blocks("csv", text), blocks("text", text)[-1]
    con = duckdb.connect(":memory:")
    con.execute("CREATE SCHEMA lib")
    for path in sorted((sql_root() / "lib" / "messages").glob("*.sql")):
        con.execute(path.read_text(encoding="utf-8"))
    values = {
        "template": line.split('"')[1],
        "fields": json.dumps({"copy_ns": 12_400_000, "copy_count": 1}),
    }
    found = con.execute("SELECT lib.message_text($template, $fields::JSON)", values).fetchall()
    assert found == [(sentence.strip(),)]


def test_the_lines_of_a_column_and_a_vendor_are_those_of_the_test_that_adds_them() -> None:
    """The CSV lines on the page are those that tests/test_extending_the_library.py tests."""
    tried = (ROOT / "tests" / "test_extending_the_library.py").read_text(encoding="utf-8")
    for heading, count in (("Add a column", 1), ("Add a vendor", 6)):
        lines = [
            line.strip() for code in blocks("csv", section(heading)) for line in code.splitlines()
        ]
        assert len(lines) == count
        assert [line for line in lines if line not in tried] == []


def test_every_reason_of_a_slow_test_is_listed() -> None:
    """The page lists the reasons for the mark ``slow`` that the tests may state."""
    assert re.findall(r"^\| `([\w ]+)` \|", section("Tests"), re.MULTILINE) == list(REASONS)


def test_a_slow_test_without_a_reason_is_refused(request: pytest.FixtureRequest) -> None:
    """Collection fails if a test is marked slow without one of the reasons."""
    for mark in (pytest.mark.slow, pytest.mark.slow("fuzz"), pytest.mark.slow(reason="dear")):
        item = pytest.Function.from_parent(request.node.parent, name="slow", callobj=lambda: None)
        item.add_marker(mark)
        with pytest.raises(pytest.UsageError, match="slow needs a reason, one of: faults, soak"):
            pytest_collection_modifyitems([item])
    item = pytest.Function.from_parent(request.node.parent, name="slow", callobj=lambda: None)
    item.add_marker(pytest.mark.slow(reason="fuzz"))
    pytest_collection_modifyitems([item])
