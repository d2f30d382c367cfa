"""The commands in docs/your_own_analyses.md run unchanged and in order."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from hta_sql.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "your_own_analyses.md"
BLOCKS = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow(reason="documents")
def test_the_commands_of_the_page(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands and the Python code of the page run in an empty folder with a store."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(store, "job.store")
    blocks = BLOCKS.findall(PAGE.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks] == ["bash", "bash", "python", "bash"]
    for language, text in blocks:
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), {})  # noqa: S102 - our own page
            continue
        for line in text.splitlines():
            program, *args = shlex.split(line)
            assert program == "hta-sql"
            assert main(args) == 0, capsys.readouterr().err
    assert "longest_kernels" in capsys.readouterr().out
