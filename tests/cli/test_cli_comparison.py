"""Tests of the text of ``hta-sql compare``: few steps, and parts below zero."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.cli.comparison import markdown_lines, text_lines
from hta_sql.synthetic import JobSpec, write_job
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

NEGATIVE = "“host step minus device step” is negative"


def test_noise_of_two_steps_is_no_time(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the noise of two steps exceeds a step, the text says that there are too few steps."""
    monkeypatch.setenv("COLUMNS", "200")
    store = tmp_path / "job.store"
    for run, delay in (("base", 20_000_000), ("more", 30_000_000)):
        spec = JobSpec(ranks=1, steps=3, step_delays={11: delay})
        write_job(tmp_path / run, spec)
        ingest_only(tmp_path / run, store, run=run)
    out = cli("compare", f"{store}:base", f"{store}:more").out
    said = "significance unknown: 2 steps per side are too few to tell how much steps vary"
    assert said in out
    (step,) = [line for line in out.splitlines() if line.startswith("step ")]
    assert step.split("  ")[-2:] == ["too few steps", "unknown"]
    assert "±" not in step


def lagging(lag_ns: int) -> Any:
    """Return a comparison whose test has this time in the part lag."""
    step = {"part": None, "noise_ns": None, "verdict": "unknown", "diff_ns": lag_ns}
    step |= {"control_ns": 9_000_000, "test_ns": 9_000_000 + lag_ns}
    step |= {"control_step_count": 1, "test_step_count": 1}
    lag = {**step, "part": "lag", "control_ns": 0, "test_ns": lag_ns}
    side = SimpleNamespace(run="job", ranks=None, steps=None)
    return SimpleNamespace(
        sides=(side, side),
        names=("control", "test"),
        unit="step",
        level="comparable",
        message="A step.",
        step=step,
        of_level=lambda level: [lag] if level == "part" else [],
        reasons=[],
        changes=[],
        predictions=[],
    )


def test_a_part_below_zero_is_explained() -> None:
    """A note explains why the part for the lag of the device is negative."""
    for lines in (lambda told: text_lines(told, 200), markdown_lines):
        assert NEGATIVE in "\n".join(lines(lagging(-1_000_000)))
        assert NEGATIVE not in "\n".join(lines(lagging(1_000_000)))
