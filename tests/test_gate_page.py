"""Tests that docs/gate.md shows the default rules, and that its workflow and the action run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from hta_sql.cli import main
from hta_sql.comparison.gate import DEFAULT_RULES
from tests.shared_stores import ingest_only

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gate.md"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
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


EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")


def steps_of_workflow() -> list[dict[str, Any]]:
    """Return the steps of the workflow's only job."""
    (workflow,) = (yaml.safe_load(text) for text in blocks("yaml"))
    (job,) = workflow["jobs"].values()
    return list(job["steps"])


class Comments(ThreadingHTTPServer):
    """The comments of a pull request, with the part of GitHub's API that the action calls."""

    def __init__(self) -> None:
        self.bodies = ["LGTM"] * 100
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Call)


class _Call(BaseHTTPRequestHandler):
    server: Comments

    def _answer(self, content: object) -> None:
        assert self.headers["Authorization"] == "Bearer secret"
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def _sent(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def do_GET(self) -> None:
        """List a page of the comments."""
        found = re.fullmatch(
            r"/repos/team/job/issues/7/comments\?per_page=100&page=(\d+)", self.path
        )
        assert found
        first = 100 * (int(found[1]) - 1)
        bodies = enumerate(self.server.bodies[first : first + 100], first)
        self._answer([{"id": at, "body": body} for at, body in bodies])

    def do_POST(self) -> None:
        """Add a comment."""
        assert self.path == "/repos/team/job/issues/7/comments"
        if self.server.status == 200:
            self.server.bodies.append(self._sent())
        self._answer({})

    def do_PATCH(self) -> None:
        """Change a comment."""
        head, _, number = self.path.rpartition("/")
        assert head == "/repos/team/job/issues/comments"
        self.server.bodies[int(number)] = self._sent()
        self._answer({})

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def comments() -> Iterator[Comments]:
    """Serve the comments of a pull request."""
    with Comments() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a repository with a baseline, rules, and a script that records a trace.

    Scripts in place of the installed commands are in ``bin`` and ``hta_sql/bin`` next to it.
    """
    folder = tmp_path / "repository"
    (folder / "ci").mkdir(parents=True)
    ingest_only({0: str(TRACE)}, tmp_path / "base.store", run="base")
    names = str(folder / "ci" / "baselines.json")
    assert main(["baseline", "set", "main", f"{tmp_path}/base.store:base", "--file", names]) == 0
    (folder / "ci" / "gate.toml").write_text(RULES.format(limit=300_000))
    (folder / "train.py").write_text(
        "import pathlib, shutil, sys\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        "folder.mkdir(parents=True, exist_ok=True)\n"
        f"shutil.copy({str(TRACE)!r}, folder / 'rank0.json')\n"
    )
    commands = {
        "bin/python3": "exit 0",  # python3 -m venv
        "bin/python": f'exec "{sys.executable}" "$@"',
        "hta_sql/bin/pip": f'[ "$*" = "install --quiet {ROOT}" ]',
        "hta_sql/bin/python": f'exec "{sys.executable}" "$@"',
        "hta_sql/bin/hta-sql": f'exec "{sys.executable}" -m hta_sql "$@"',
    }
    for name, line in commands.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    return folder


class Job:
    """Runs the workflow's job as GitHub does: its shell steps, and those of the action.

    Attributes:
        summary: The job summary.
        log: Output of the last run.
    """

    def __init__(self, checkout: Path, api: str, number: str = "7") -> None:
        self.log = ""
        self.summary = checkout / "summary.md"
        self._folder = checkout
        self._output = checkout.parent / "output"
        self._context = {
            "github.action_path": str(ROOT),
            "github.event.pull_request.number": number,
            "github.token": "secret",
        }
        self._environment = {
            **os.environ,
            "PATH": f"{checkout.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(checkout.parent),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self._output),
            "GITHUB_API_URL": api,
            "GITHUB_REPOSITORY": "team/job",
            "GITHUB_WORKFLOW": "performance",
            "GITHUB_JOB": "gate",
        }

    def run(self, changes: Mapping[str, str] | None = None) -> int:
        """Run the job; return the first nonzero exit code.

        Args:
            changes: Inputs of the action that differ from those on the page.
        """
        self.summary.unlink(missing_ok=True)
        self.log = ""
        for step in steps_of_workflow():
            inputs = {**step.get("with", {}), **(changes or {})}
            is_action = step.get("uses", "").startswith("OWNER/")
            for part in self._parts(inputs) if is_action else [step]:
                if "run" in part and (code := self._step(part)):
                    return code
        return 0

    def _parts(self, inputs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the steps of the action, after GitHub's checks of its inputs."""
        assert inputs.keys() <= ACTION["inputs"].keys()
        for name, about in ACTION["inputs"].items():
            assert name in inputs or not about.get("required")
            self._context[f"inputs.{name}"] = inputs.get(name) or self._value(about["default"])
        yield from ACTION["runs"]["steps"]

    def _value(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self._context[found[1]], text)

    def _step(self, step: Mapping[str, Any]) -> int:
        assert "${{" not in step["run"]  # inputs would become code
        given = {name: self._value(text) for name, text in step.get("env", {}).items()}
        bash = shutil.which("bash") or "bash"
        shell = [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        self._output.write_text("")
        done = subprocess.run(  # noqa: S603 - our own steps
            shell,
            cwd=self._folder,
            env={**self._environment, **given},
            check=False,
            capture_output=True,
            text=True,
        )
        self.log += done.stdout + done.stderr
        for line in self._output.read_text().splitlines():
            name, _, value = line.partition("=")
            self._context[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode


def test_the_page_lists_the_inputs_of_the_action() -> None:
    """The table on the page has every input of the action."""
    page = PAGE.read_text(encoding="utf-8").split("| input |")[1].split("\n\n")[0]
    cells = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == {*ACTION["inputs"]}


@pytest.mark.slow(reason="documents")
def test_the_workflow_writes_a_summary_and_one_comment(checkout: Path, comments: Comments) -> None:
    """The job ends with the verdict; a later run updates the comment of the first one."""
    job = Job(checkout, f"http://127.0.0.1:{comments.server_port}")
    assert job.run() == 0, job.log
    assert job.summary.read_text("utf-8").startswith("### Gate passed: 1 rule, 1 passed.")
    assert (checkout / "gate.xml").exists()
    assert len(comments.bodies) == 101
    assert "### Gate passed" in comments.bodies[-1]
    (checkout / "ci" / "gate.toml").write_text(RULES.format(limit=100_000))
    assert job.run() == 1
    assert job.summary.read_text("utf-8").startswith("### Gate failed: 1 rule, 1 failed.")
    assert len(comments.bodies) == 101
    assert "### Gate failed" in comments.bodies[-1]
    names = json.loads((checkout / "ci" / "baselines.json").read_text(encoding="utf-8"))
    assert names["baselines"][0]["store"] == "../../base.store"


@pytest.mark.slow(reason="documents")
def test_the_action_without_a_comment_or_a_verdict(checkout: Path, comments: Comments) -> None:
    """No pull request or permission is a notice; a missing run is reported instead of a verdict."""
    api = f"http://127.0.0.1:{comments.server_port}"
    job = Job(checkout, api, number="")
    assert job.run() == 0
    assert "::notice::The gate writes no comment: no pull request." in job.log
    comments.status = 403
    job = Job(checkout, api)
    assert job.run() == 0
    assert "::notice::The gate writes no comment: HTTP Error 403" in job.log
    assert comments.bodies == ["LGTM"] * 100
    comments.status = 200
    assert job.run({"candidate": "$(touch stolen) nowhere"}) not in (0, 3)
    assert not (checkout / "stolen").exists()
    assert "### Gate without a verdict (exit code " in comments.bodies[-1]
    assert "### Gate without a verdict (exit code " in job.summary.read_text("utf-8")


@pytest.mark.slow(reason="documents")
def test_an_inconclusive_verdict_of_the_action_fails_or_warns(
    checkout: Path, comments: Comments
) -> None:
    """A rule about a missing number is inconclusive: exit code 3, or a warning on request."""
    missing = '\n[[rule]]\nanalysis = "kpis"\ncolumn = "peak_memory_bytes"\nmax_increase_pct = 5\n'
    (checkout / "ci" / "gate.toml").write_text(missing)
    job = Job(checkout, f"http://127.0.0.1:{comments.server_port}")
    assert job.run() == 3, job.log
    assert job.run({"inconclusive": "warn"}) == 0
    assert "::warning::The gate is inconclusive." in job.log
