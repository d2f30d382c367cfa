"""The README tells the truth: its Python runs, its SQL runs, its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hta_sql
from docs.generate import lists
from hta_sql.synthetic import JobSpec, write_job

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder where the demo has been run."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path / "hta_sql_demo" / "traces" / "8ranks-4steps", JobSpec(ranks=6, steps=2))
    return tmp_path


def test_python_runs(demo: Path) -> None:
    """Every Python block runs as it stands, in the order of the page."""
    assert demo.is_dir()
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own page


@pytest.mark.slow
def test_sql_runs(demo: Path) -> None:
    """Every statement of the SQL blocks runs on a store."""
    with hta_sql.ingest(str(demo / "hta_sql_demo"), demo / "job.store", jobs=1) as store:
        for block in blocks("sql"):
            for statement in block.split(";\n"):
                if statement.strip():
                    assert store.sql(statement).columns


def test_lists_are_complete() -> None:
    """Every table and analysis stands in the README: ``make docs`` writes the lists."""
    assert lists.updated(README) == README
