"""A published production job with its figures, which is not part of this project."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PRODUCTION = Path(__file__).parents[2] / "shared" / "production"
ALL_STEPS = 1_000
"""More steps than the job has."""

needs_production = pytest.mark.skipif(
    not PRODUCTION.is_dir(), reason="the production job is absent"
)


def write_traces(folder: Path, steps: int = ALL_STEPS) -> Path:
    """Write the first steps of the job as Kineto traces, with the job's own converter."""
    convert = runpy.run_path(str(PRODUCTION / "to_kineto.py"))["write"]
    convert(str(PRODUCTION / "trace-ST.parquet"), str(folder), steps)
    return folder
