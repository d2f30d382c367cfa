"""After kill -9 at any moment, readers see either the old or the new store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what it kills")


def kill_and_ask(folder: Path, kills: int, seed: int) -> str:
    """Run crash_rounds.py, and return its output."""
    program = [sys.executable, str(Path(__file__).with_name("crash_rounds.py"))]
    done = subprocess.run(  # noqa: S603 - our own program
        [*program, str(folder), str(kills), str(seed)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_readers_see_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    """Readers see the old or the new store after a kill; the next ingest deletes orphaned files."""
    assert kill_and_ask(tmp_path, kills=2, seed=2).startswith("2 kills survived")


@pytest.mark.slow(reason="faults")
def test_readers_see_the_old_store_or_the_new_one_two_hundred_times(tmp_path: Path) -> None:
    """Readers see the old or the new store after each of 200 random kills."""
    assert kill_and_ask(tmp_path, kills=200, seed=1).startswith("200 kills survived")
