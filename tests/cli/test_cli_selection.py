"""``STORE:RUN`` selects a run in every command that reads the runs of a store."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from hta_sql.cli.selection import select_run
from tests.cli.conftest import Cli
from tests.shared_stores import ingest_only


@pytest.fixture(scope="module")
def two_runs(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the same two ranks as runs ``base`` and ``tuned``."""
    store = tmp_path_factory.mktemp("selection") / "job.store"
    for run in ("base", "tuned"):
        ingest_only(traces, store, run=run)
    return store


@pytest.mark.parametrize("command", ["advice", "doctor"])
def test_a_command_shows_the_selected_run_only(cli: Cli, two_runs: Path, command: str) -> None:
    """The output of a command on ``STORE:RUN`` does not mention other runs."""
    assert "base" in cli(command, two_runs).out
    done = cli(command, f"{two_runs}:tuned")
    assert "tuned" in done.out
    assert "base" not in done.out


def test_an_analysis_runs_on_the_selected_run(cli: Cli, two_runs: Path) -> None:
    """``STORE:RUN`` is equivalent to ``--runs RUN``."""
    query = ("temporal_breakdown", "--columns", "run,rank", "--format", "csv")
    done = cli("run", f"{two_runs}:tuned", *query)
    assert done.out == "run,rank\ntuned,0\ntuned,1\n"
    assert done.out == cli("run", two_runs, *query, "--runs", "tuned").out


def test_an_export_contains_the_selected_run(cli: Cli, two_runs: Path, tmp_path: Path) -> None:
    """An export of ``STORE:RUN`` contains only the rows of that run."""
    cli("export", f"{two_runs}:tuned", "jobs", "--format", "csv", "-o", tmp_path)
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["run", "tuned"]


def test_an_advice_points_to_the_selected_run(cli: Cli, two_runs: Path) -> None:
    """The commands that ``advice`` suggests select the same run."""
    found = cli("advice", f"{two_runs}:tuned").out
    suggestions = [line for line in found.splitlines() if "See: " in line]
    assert all(f"hta-sql run {two_runs}:tuned " in line for line in suggestions)


def test_a_run_is_named_once(cli: Cli, two_runs: Path) -> None:
    """``STORE:RUN`` and ``--runs`` cannot be combined, and an unknown run is an error."""
    query = ("temporal_breakdown", "--runs", "base")
    cli("run", f"{two_runs}:tuned", *query).fails(2, "STORE:tuned or --runs, not both")
    cli("run", f"{two_runs}:nope", "temporal_breakdown").fails(1, "No run 'nope'", "base, tuned")
    cli("advice", f"{two_runs}:").fails(2, "not of the form STORE:RUN")


def test_an_analysis_without_runs_refuses_a_run() -> None:
    """A custom analysis without the parameter ``runs`` cannot be run on ``STORE:RUN``."""
    with pytest.raises(click.UsageError, match="has no parameter runs: omit :tuned"):
        select_run({"name": "mine"}, "tuned")
