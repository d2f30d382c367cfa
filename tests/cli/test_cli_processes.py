"""Tests of whole commands: catalog, demo, closed pipes and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql.cli.demo import is_at_a_screen, program_name

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def in_new_process(*args: str | Path) -> list[str]:
    """Return the command line of a new Python process that runs hta-sql."""
    return [sys.executable, "-m", "hta_sql", *map(str, args)]


def test_catalog_repairs_a_moved_store(cli: Cli, store: Path, tmp_path: Path) -> None:
    """``hta-sql catalog`` rebuilds the catalog of a copied store."""
    copy = tmp_path / "copy.store"
    for path in store.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(store)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    done = cli("catalog", copy)
    assert done.code == 0
    assert re.search(r"Built .*catalog.duckdb in .* s: 1 run, 2 ranks, \d+ tables", done.err)
    assert cli("sql", copy, "SELECT count(*) AS n FROM gpu_ops", "--format", "csv").out == "n\n6\n"
    cli("catalog", tmp_path / "none").fails(1, "No store at")


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the files that a browser would open; reports are empty, and the folder is new."""
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)

    def empty(_: object, path: Path, **__: object) -> Path:
        path.write_text("")
        return path

    monkeypatch.setattr("hta_sql.report.write_report", empty)
    return opened


def test_demo_finds_the_slow_rank(cli: Cli, tmp_path: Path, launched: list[str]) -> None:
    """The demo finds the slow rank and suggests commands that work, even if it is repeated."""
    for opens in ("--open", "--no-open"):
        done = cli("demo", "--ranks", "4", "--steps", "3", opens)
        assert done.code == 0
        with hta_sql.open(tmp_path / "hta_sql_demo" / "demo.store") as store:
            (late,) = [row for row in store.run("stragglers").records() if row["is_straggler"]]
        assert (late["rank"], late["cause"]) == (2, "data loading")
        assert late["message"] in " ".join(done.out.split())
        assert done.out.endswith("The report: hta_sql_demo/report.html\n")
    assert [path.name for path in tmp_path.iterdir()] == ["hta_sql_demo"]
    assert launched == ["hta_sql_demo/report.html"]
    proposed = re.findall(r"^  hta-sql (.*)$", done.out, re.MULTILINE)
    names = {line.split()[0] for line in proposed}
    assert {"advice", "run", "sql"} <= names
    assert "report" not in names  # the report is written already
    for line in proposed:
        args = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', line)]
        assert cli(*args).code == 0


def test_demo_proposes_commands_by_their_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Commands start with hta-sql. An environment that is not active is activated first."""
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/hta-sql")
    assert program_name() == ("hta-sql", "")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "env" / "bin"
    scripts.mkdir(parents=True)
    monkeypatch.setattr("sys.executable", str(scripts / "python"))
    assert program_name() == (f"{scripts / 'python'} -m hta_sql", "")
    for name in ("hta-sql", "activate"):
        (scripts / name).touch()
    assert program_name() == ("hta-sql", ". env/bin/activate")


@pytest.mark.parametrize(
    ("environment", "shows"),
    [({"DISPLAY": ":0"}, True), ({"DISPLAY": ":0", "CI": "true"}, False), ({}, False)],
)
def test_demo_opens_its_report_where_somebody_sees_it(
    environment: dict[str, str], shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo opens its report only on a terminal with a display and outside CI."""
    for name in ("CI", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    for is_terminal in (True, False):
        monkeypatch.setattr("sys.stdout.isatty", lambda told=is_terminal: told)
        assert is_at_a_screen() == (shows and is_terminal)


@pytest.mark.parametrize("command", ["list", "--version"])
def test_a_closed_output_is_an_error(command: str) -> None:
    """``hta-sql list >&-`` fails with an error message, because stdout is closed."""
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", 'exec "$0" -m hta_sql "$1" >&-', sys.executable, command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "error: stdout is closed; write to a file with -o FILE.\n",
    )


def test_closed_pipe_is_quiet(store: Path) -> None:
    """``hta-sql sql ... | head -1`` prints nothing to stderr."""
    query = "SELECT range, 'text' FROM range(200000)"
    with subprocess.Popen(  # noqa: S603
        in_new_process("sql", store, query, "--format", "csv"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


@contextmanager
def computing(store: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a query that takes hours, and wait until DuckDB computes it."""
    query = "SELECT sum(a.range + b.range) FROM range(1000000000) AS a, range(1000) AS b"
    with subprocess.Popen(  # noqa: S603
        in_new_process("sql", store, query),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        time.sleep(2)
        yield process


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_query(store: Path) -> None:
    """Ctrl-C ends a query with exit code 130 and one line, even while DuckDB is computing."""
    with computing(store) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.split()) == (130, b"", [b"error:", b"interrupted."])


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("pause_s", [0, 0.01, 0.1])
def test_ctrl_c_twice_ends_a_command_at_once(store: Path, pause_s: float) -> None:
    """An impatient user gets an exit code, not a crash of the engine."""
    with computing(store) as process:
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            time.sleep(pause_s)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, b"")
    assert b"terminate called" not in err
