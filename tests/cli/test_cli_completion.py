"""Shell completion of commands, options and values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.cli import main
from hta_sql.cli.completion import PROGRAM, VARIABLE

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("repo",), ["plain,report"]),
        (("run", "{store}", "stragg"), ["plain,straggler_metric", "plain,stragglers"]),
        (("run", "{store}", "idle_causes", "--max"), []),
        (("run", "{store}", "stragglers", "--ru"), ["plain,--runs"]),
        (("run", "{store}", "stragglers", "--runs", ""), ["plain,job"]),
        (("advice", "{store}", "--runs", "other,j"), ["plain,other,job"]),
        (("open", "{store}", "--runs", "x"), []),
        (("open", "nowhere", "--runs", ""), []),
        (("report", "some/fol"), ["dir,some/fol"]),
    ],
)
def test_a_word_is_completed(
    words: tuple[str, ...],
    expected: list[str],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Commands, options and run names are completed, while paths are left to the shell."""
    typed = [word.format(store=store) for word in words]
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join([PROGRAM, *typed]))
    monkeypatch.setenv("COMP_CWORD", str(len(typed)))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_has_its_script(shell: str, cli: Cli) -> None:
    """``hta-sql completion SHELL`` prints a completion script for each shell."""
    script = cli("completion", shell).out
    assert f"{VARIABLE}={shell}_complete" in script
