"""Simulated jobs that differ from a base job only by their seed, or by a change of known size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql import synthetic
from hta_sql.synthetic import JobSpec
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

BASE = JobSpec(ranks=2, steps=11, layers=3, ops_per_layer=6)
"""The base job. Ten of its steps count, because analyses exclude the last one."""

CHANGED: dict[str, dict[str, Any]] = {
    "slower": {"seed": 20, "slow_kernels": {0: 1.03, 1: 1.03}},
    "loading": {"seed": 21, "stragglers": {0: 2_000_000, 1: 2_000_000}},
    "fewer_steps": {"seed": 22, "steps": 7},
    "deeper": {"seed": 23, "ops_per_layer": 7},
    "old_names": {"seed": 24, "nccl_names": "old"},
    "collapsed": {"seed": 25, "slow_kernels": {0: 0.1, 1: 0.1}},
    "shallower": {"seed": 26, "ops_per_layer": 5},
    "more_ranks": {"seed": 27, "ranks": 3},
    "remembers": {"seed": 28, "memory_events": True},
}
NOISE: dict[str, dict[str, Any]] = {f"noise{seed}": {"seed": seed} for seed in range(5)}

FEW = ("noise0", "noise1", "loading")
ALL = (*NOISE, *CHANGED)


def planted_store(factory: pytest.TempPathFactory, names: Collection[str]) -> Path:
    """Simulate jobs and ingest each as a run, once for all tests; return the store."""

    def make(store: Path) -> None:
        for run in names:
            traces = store.parent / run
            synthetic.write_job(traces, replace(BASE, **(NOISE | CHANGED)[run]))
            hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
        hta_sql.publish(store).close()

    return made_once(factory, f"planted-{len(names)}", make)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest two seeds of a job, and a variant with a slower data loader."""
    with hta_sql.open(planted_store(tmp_path_factory, FEW)) as store:
        yield store


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest all planted jobs."""
    with hta_sql.open(planted_store(tmp_path_factory, ALL)) as store:
        yield store
