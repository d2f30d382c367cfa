"""Fixtures for the safety tests: they write small traces and query their compute times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hta_sql
from tests.cli.conftest import cli

__all__ = ["cli"]

WriteTraces = Callable[..., Path]
BusyTimes = Callable[[Path | str], dict[int, float]]


@pytest.fixture
def write_traces(tmp_path: Path) -> WriteTraces:
    """Return a function that writes one trace per rank with a given compute time.

    Example: ``write_traces({0: 100.0, 1: 120.0})`` [µs].
    """

    def write(durations: dict[int, float], folder: str = "traces", events: int = 1) -> Path:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        for rank, duration in durations.items():
            path = place / f"rank{rank}.json"
            path.write_text(json.dumps(trace_of(rank, duration, events)))
        return place

    return write


def trace_of(rank: int, duration: float, events: int = 1) -> dict[str, object]:
    """Return the trace of a rank with consecutive kernels."""
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "dur": duration}
    kernel["args"] = {"device": 0, "stream": 7}
    spread = [kernel | {"ts": number * 1000.0} for number in range(events)]
    return {"distributedInfo": {"rank": rank}, "traceEvents": spread}


@pytest.fixture
def busy_times() -> BusyTimes:
    """Return a function that queries the compute time of each rank [µs]."""

    def ask(store: Path | str) -> dict[int, float]:
        with hta_sql.open(store) as opened:
            return busy_times_of(opened)

    return ask


def busy_times_of(opened: hta_sql.TraceStore) -> dict[int, float]:
    """Return the compute time of each rank in an open store [µs]."""
    table = opened.run("temporal_breakdown").arrow().to_pydict()
    return {rank: ns / 1000 for rank, ns in zip(table["rank"], table["compute_ns"], strict=True)}
