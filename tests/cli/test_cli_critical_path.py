"""Tests of the notes of ``hta-sql critical-path`` on communication."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.synthetic import JobSpec, write_job
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

WAITS = "include waits for other ranks"


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two ranks: rank 0 waits 3 ms a step in collectives for rank 1."""
    folder = tmp_path_factory.mktemp("late")
    write_job(folder / "traces", JobSpec(ranks=2, steps=2, stragglers={1: 3_000_000}))
    ingest_only(folder / "traces", folder / "job.store", run="job")
    return folder / "job.store"


def test_faster_communication_is_said_to_include_waits(cli: Cli, late: Path) -> None:
    """The note names the replay of all ranks, which separates transfer from waits."""
    done = cli("critical-path", late, "--faster", "2", "--class", "communication")
    assert WAITS in done.err
    assert f"hta-sql run {late} what_if_faster" in done.err
    assert not cli("critical-path", late, "--faster", "2", "--class", "computation").err


def test_a_path_bound_by_communication_is_said_to_include_waits(cli: Cli, late: Path) -> None:
    """The path of the waiting rank has the note; that of the straggler is not bound by transfer."""
    assert WAITS in cli("critical-path", late, "--ranks", "0").err
    assert not cli("critical-path", late, "--ranks", "1").err
    assert not cli("critical-path", late, "--ranks", "0", "--path").err


def test_a_single_rank_has_no_other_to_wait_for(cli: Cli, tmp_path: Path) -> None:
    """With one rank in the store, a path bound by communication has no note."""
    write_job(tmp_path / "traces", JobSpec(ranks=1, steps=2))
    ingest_only(tmp_path / "traces", tmp_path / "job.store", run="job")
    assert WAITS not in cli("critical-path", tmp_path / "job.store").err
