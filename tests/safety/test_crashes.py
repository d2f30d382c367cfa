"""kill -9 at any moment: readers see the store of before or of after."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills")


def kill_and_ask(folder: Path, kills: int, seed: int) -> str:
    """Run the program beside this file; what it says."""
    program = [sys.executable, str(Path(__file__).with_name("crash_rounds.py"))]
    done = subprocess.run(  # noqa: S603 - our own program
        [*program, str(folder), str(kills), str(seed)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_readers_see_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    """Whatever a killed ingest, shard or publish left behind, the next ingest cleans up."""
    assert kill_and_ask(tmp_path, kills=2, seed=2).startswith("2 kills survived")


@pytest.mark.slow
def test_readers_see_the_old_store_or_the_new_one_two_hundred_times(tmp_path: Path) -> None:
    """The same, until each place to be killed at has had its turn."""
    assert kill_and_ask(tmp_path, kills=200, seed=1).startswith("200 kills survived")
