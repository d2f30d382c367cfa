"""Tests of ``hta-sql counters``, which writes traces with counters and prints their paths."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

TRACES = Path(__file__).parents[1] / "traces"


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """Ingest two ranks that have memory copies."""
    for rank in (0, 1):
        shutil.copy(TRACES / "copies_at_once.json", tmp_path / f"rank{rank}.json")
    assert cli("ingest", tmp_path, "-o", tmp_path / "job.store").code == 0
    return tmp_path


def test_paths_go_to_stdout_and_counts_to_stderr(cli: Cli, folder: Path) -> None:
    """New traces are written next to the original ones, and their paths go to stdout."""
    done = cli("counters", folder / "job.store")
    paths = [folder / f"rank{rank}_with_counters.json.gz" for rank in (0, 1)]
    assert done.out.splitlines() == [str(path) for path in paths]
    assert "rank 1: 6 events and " in done.err
    assert all(path.exists() for path in paths)


def test_a_name_cannot_act_on_the_terminal(cli: Cli, tmp_path: Path) -> None:
    """Control characters in a trace's file name are escaped."""
    trace = tmp_path / "rank0\x1b[31m.json"
    shutil.copy(TRACES / "two_ranks_0.json", trace)
    assert cli("ingest", trace, "-o", tmp_path / "job.store").code == 0
    done = cli("counters", tmp_path / "job.store")
    assert done.out == f"{tmp_path}/rank0\\x1b[31m_with_counters.json.gz\n"
    assert "\x1b" not in done.err


def test_series_ranks_and_folder_choose(cli: Cli, folder: Path) -> None:
    """Options select the series, ranks and output folder."""
    arguments = ("counters", folder / "job.store", "--ranks", "1", "-o", folder / "out")
    done = cli(*arguments, "--series", "memory")
    (path,) = (folder / "out").iterdir()
    assert done.out == f"{path}\n"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "C"} == {
        *("Memcpy HtoD", "Memcpy DtoH", "Memset")
    }
    assert "6 events and 0 points" in cli(*arguments, "--series", "queue").err


def test_mistakes_name_what_there_is(cli: Cli, folder: Path) -> None:
    """An unknown run, rank or series and a missing trace are reported."""
    store = folder / "job.store"
    assert "No run 'x'" in cli("counters", store, "--runs", "x").err
    assert "No rank 7" in cli("counters", store, "--ranks", "7").err
    assert cli("counters", store, "--series", "power").code == 2
    (folder / "rank0.json").unlink()
    done = cli("counters", store, "--ranks", "0")
    assert (done.code, done.out) == (1, "")
    assert "No such file" in done.err
