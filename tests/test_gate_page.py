"""Tests that docs/gate.md shows the default rules and that its workflow runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hta_sql.cli import main
from hta_sql.comparison.gate import DEFAULT_RULES
from tests.shared_stores import ingest_only

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gate.md"
TRACE = Path(__file__).parent / "traces" / "annotated_operators.json"

RULES = """
[[rule]]
name = "step"
analysis = "step_accounting"
column = "step_ns"
aggregate = "mean"
max = {limit}
"""


def blocks(language: str) -> list[str]:
    """Return all code blocks in a language on the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_shows_the_rules_that_hold() -> None:
    """The first TOML block on the page equals the file of default rules."""
    assert blocks("toml")[0] == DEFAULT_RULES.read_text(encoding="utf-8")


def steps_of_workflow() -> list[dict[str, Any]]:
    """Return the steps of the workflow's only job."""
    (workflow,) = (yaml.safe_load(text) for text in blocks("yaml"))
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a repository with a baseline and a script that records a trace.

    Shell scripts for the commands are in ``bin`` next to it.
    """
    folder = tmp_path / "repository"
    (folder / "ci").mkdir(parents=True)
    ingest_only({0: str(TRACE)}, tmp_path / "base.store", run="base")
    names = str(folder / "ci" / "baselines.json")
    assert main(["baseline", "set", "main", f"{tmp_path}/base.store:base", "--file", names]) == 0
    (folder / "train.py").write_text(
        "import pathlib, shutil, sys\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        "folder.mkdir(parents=True)\n"
        f"shutil.copy({str(TRACE)!r}, folder / 'rank0.json')\n"
    )
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    commands = {
        "pip": "exit 0",
        "python": f'exec "{sys.executable}" "$@"',
        "hta-sql": f'exec "{sys.executable}" -m hta_sql "$@"',
    }
    for name, line in commands.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (bin_folder / name).chmod(0o755)
    return folder


def run_workflow(checkout: Path) -> tuple[int, str]:
    """Run the shell steps as GitHub does; return the first nonzero exit code and the summary."""
    summary = checkout / "summary.md"
    path = f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    failed = 0
    for step in steps_of_workflow():
        if "run" in step and (not failed or step.get("if") == "always()"):
            shell = [shutil.which("bash") or "bash", "-e", "-c", step["run"]]
            done = subprocess.run(shell, cwd=checkout, env=environment, check=False)  # noqa: S603
            failed = failed or done.returncode
    return failed, summary.read_text(encoding="utf-8")


@pytest.mark.slow(reason="documents")
def test_the_workflow_runs(checkout: Path) -> None:
    """The workflow passes, or fails if a limit is exceeded, and always writes the summary."""
    rules = checkout / "ci" / "gate.toml"
    rules.write_text(RULES.format(limit=300_000))
    code, summary = run_workflow(checkout)
    assert code == 0
    assert summary.startswith("### Gate passed: 1 rule, 1 passed.")
    assert (checkout / "gate.xml").exists()
    shutil.rmtree(checkout / "traces")
    (checkout / "summary.md").unlink()
    rules.write_text(RULES.format(limit=100_000))
    code, summary = run_workflow(checkout)
    assert code == 1
    assert summary.startswith("### Gate failed: 1 rule, 1 failed.")
    names = json.loads((checkout / "ci" / "baselines.json").read_text(encoding="utf-8"))
    assert names["baselines"][0]["store"] == "../../base.store"
