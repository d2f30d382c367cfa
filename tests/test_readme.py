"""Tests that the README is correct: its Python and SQL run, and its commands and links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hta_sql
from hta_sql.cli import command_of
from hta_sql.library.objects import load_library
from hta_sql.synthetic import JobSpec, write_job

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return all fenced code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder that looks as if ``make demo`` has been run."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path / "hta_sql_demo" / "traces" / "8ranks-4steps", JobSpec(ranks=6, steps=2))
    return tmp_path


def test_python_runs(demo: Path) -> None:
    """Every Python block runs unchanged, in page order."""
    assert demo.is_dir()
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own page


def test_sql_runs(demo: Path) -> None:
    """Every statement in the SQL blocks runs on a store."""
    with hta_sql.ingest(str(demo / "hta_sql_demo"), demo / "job.store", jobs=1) as store:
        for block in blocks("sql"):
            for statement in block.split(";\n"):
                if statement.strip():
                    assert store.sql(statement).columns


def test_each_command_exists() -> None:
    """Every ``hta-sql NAME`` on the page is a command, and every analysis that it runs exists."""
    commands = re.findall(r"(?:^|`|\$ )hta-sql ([a-z][\w-]*)", README, re.MULTILINE)
    assert len(commands) > 15
    assert all(map(command_of, commands))
    analyses = set(re.findall(r"hta-sql run \S+ (\w+)", README))
    assert analyses <= {a.base_name for a in load_library().newest()}


def test_each_link_leads_to_a_file() -> None:
    """Each relative link leads to an existing file or folder."""
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
