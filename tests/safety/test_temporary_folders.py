"""A temporary folder is deleted by its process, or by a later process if that one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

USE = """
import sys
from pathlib import Path
from hta_sql.machine import temporary_folder
with temporary_folder() as folder:
    Path(folder, "spilled").write_text("")
    print(folder, flush=True)
    sys.stdin.read()
"""

QUERY = """
import duckdb
from hta_sql.cli.interrupts import Interrupts
from hta_sql.machine import temporary_folder
with Interrupts().watched(), temporary_folder() as folder:
    print(folder, flush=True)
    duckdb.sql("SELECT count(*) FROM range(1000000), range(1000000) AS r(i) WHERE i > range").fetchall()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which TMPDIR is the test's folder."""
    return {**os.environ, "TMPDIR": str(tmp_path)}


def started(environment: dict[str, str], program: str = USE) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that creates a temporary folder; return the process and the folder."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_those_of_dead_processes_only(environment: dict[str, str], tmp_path: Path) -> None:
    """Only folders of dead processes are deleted; a running process keeps its folder."""
    (tmp_path / "hta_sql-notes").write_text("somebody's")
    dead, left = started(environment)
    dead.kill()
    dead.communicate()
    assert (left / "spilled").exists()
    alive, used = started(environment)
    third, _ = started(environment)
    third.communicate()
    assert not left.exists()
    assert (used / "spilled").exists()
    alive.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["hta_sql-notes"]


def test_sigterm_in_the_middle_of_a_query(environment: dict[str, str], tmp_path: Path) -> None:
    """SIGTERM ends a command at once, even during a query, and its temporary folder is deleted."""
    process, used = started(environment, QUERY)
    assert used.is_dir()
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    process.communicate()
    assert not list(tmp_path.iterdir())
