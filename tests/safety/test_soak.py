"""Concurrent writers, readers, kills and damage cause no wrong answer and no orphaned file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.safety.soak_truth import ANYTHING, Journal, Truth, content_of, wrong

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads /proc")


def test_what_an_answer_may_be(tmp_path: Path) -> None:
    """During a change, a reader may see the old or the new state; after it, only the new state."""
    journal, truth = Journal(tmp_path / "new.journal"), Truth(tmp_path)
    with journal.change("add", ["a", 3], {"a": 3}):
        may = truth.may_be(since=0)
        assert wrong({}, may) == wrong({"a": 3}, may) == []
        assert wrong({"a": 4}, may) == ["a is 4, and may be [None, 3]"]
    assert truth.may_be(since=1e12) == {"a": [3]}
    assert wrong({}, truth.may_be(since=1e12)) == ["a is None, and may be [3]"]
    with journal.change("damage", [], {"a": ANYTHING}):
        assert wrong({"a": "mixed"}, truth.may_be(since=1e12)) == []


def test_a_change_that_was_cut_off(tmp_path: Path) -> None:
    """After an interrupted change, readers may see either state until a writer completes it."""
    with (
        pytest.raises(KeyboardInterrupt),
        Journal(tmp_path / "j").change("add", ["a", 3], {"a": 3}),
    ):
        raise KeyboardInterrupt
    after = Journal(tmp_path / "j")
    assert (after.unfinished, after.state) == (("add", ["a", 3]), {"a": [None, 3]})


def test_a_mixed_run_has_no_content() -> None:
    """A run whose ranks or kernels have different contents is recognized as mixed."""
    assert content_of([(0, 3, 309_000), (1, 3, 309_000)]) == 3
    for rows in (
        [(0, 3, 309_000)],
        [(0, 3, 309_000), (1, 3, 312_000)],
        [(0, 3, 309_000), (1, 2, 206_000)],
    ):
        assert str(content_of(rows)).startswith("mixed")


@linux
@pytest.mark.slow(reason="soak")
def test_a_soak_of_a_minute(tmp_path: Path) -> None:
    """A soak test of one minute with four writers and eight readers finds no failure."""
    program = [sys.executable, "-m", "tests.safety.soak", str(tmp_path / "soak"), "60", "1"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "seed 1: clean"), done.stdout
