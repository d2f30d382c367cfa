"""Tables by operator, kernel, module or line sum to the total time of all device operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hta_sql
from hta_sql import synthetic
from hta_sql.errors import HtaSqlError
from hta_sql.synthetic import JobSpec
from tests.parity.jobs import SHARED
from tests.properties.traces import store_of_job
from tests.shared_stores import made_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

SUMS = {
    "operator_table_v1()": "sum(t.device_self_ns) FILTER (t.name <> '[memory]')",
    "operator_table_v1(like_torch := true)": (
        "sum(t.device_self_ns) FILTER (t.side = 'device' AND NOT t.is_user_annotation)"
    ),
    "launching_operators_v1()": "sum(t.device_ns)",
    "launching_operators_v1(by_kernel := true)": "sum(t.device_ns)",
    "operator_categories_v1()": "sum(t.device_ns)",
    "source_lines_v1()": "sum(t.device_self_ns)",
    "folded_stacks_v1()": "sum(t.device_ns)",
    "modules_v1()": "sum(t.device_self_ns + t.backward_device_self_ns)",
    "gpu_kernels_by_name_v1()": "sum(t.sum_ns)",
}
"""Table ─▶ its sum over all device operations."""

KERNEL_SUMS = {
    "roofline_v1()": ("sum(t.device_ns)", "g.class = 'computation'"),
    "kernel_table_v1()": ("sum(t.sum_ns)", "true"),
    "kernel_table_v1(by_operator := true)": ("sum(t.sum_ns)", "true"),
}
"""Table ─▶ its sum over kernels, and the condition on the kernels."""

MODULES = "EXISTS (FROM python_calls AS p WHERE p.run = g.run AND p.rank = g.rank AND starts_with(p.name, 'nn.Module: '))"
"""Condition that a rank has rows in ``modules``."""

FRAMES = "EXISTS (FROM python_calls AS p WHERE p.run = g.run AND p.rank = g.rank)"
"""Condition that a rank has rows in ``source_lines``."""

DIFFERENT = """
    WITH
        totals AS (
            SELECT g.run, g.rank, sum(g.dur)::BIGINT AS device_ns
            FROM gpu_ops AS g
            WHERE g.class <> 'sync' AND NOT g.is_suspect AND NOT g.in_last_step AND {condition}
            GROUP BY g.run, g.rank
        ),
        sums AS (
            SELECT t.run, t.rank, {total}::BIGINT AS device_ns FROM {call} AS t GROUP BY t.run, t.rank
        )
    SELECT t.run, t.rank, t.device_ns, s.device_ns
    FROM totals AS t
    LEFT JOIN sums AS s ON s.run = t.run AND s.rank = t.rank
    WHERE coalesce(s.device_ns, 0) <> t.device_ns
"""

UNOWNED = """
    SELECT DISTINCT t.run, t.{column} FROM {call} AS t
    WHERE starts_with(t.{column}, '[') AND t.run <> 'lost' ORDER BY ALL
"""

JOBS = {
    "plain": JobSpec(ranks=2, steps=2, layers=2, ops_per_layer=4, seed=1),
    "replays": JobSpec(ranks=1, steps=3, layers=2, ops_per_layer=4, seed=2, graph_launches=True),
    "early": JobSpec(ranks=2, steps=1, layers=2, ops_per_layer=4, seed=3, early_kernels=30),
    "lost": JobSpec(
        ranks=1, steps=3, layers=2, ops_per_layer=4, seed=4, lost_launch_every=5, python_stacks=True
    ),
}


MERGED = "merged_4rank_mi300_fused"
"""A file of four merged ranks, which is read as one rank: its operations overlap themselves."""


def assert_all_sums(store: TraceStore) -> None:
    """Assert that each table sums to the total duration of the device operations."""
    checks = [(call, total, "true") for call, total in SUMS.items()]
    checks += [
        (call, total, f"g.kind = 'kernel' AND {which}")
        for call, (total, which) in KERNEL_SUMS.items()
    ]
    for call, total, which in checks:
        needs = {"modules": MODULES, "source_lines": FRAMES}
        condition = needs.get(call.partition("_v")[0], which)
        query = DIFFERENT.format(call=call, total=total, condition=condition)
        assert store.sql(query).rows() == [], call


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest jobs with graph replays, kernels from before the capture, and lost launches."""

    def make(store: Path) -> None:
        for run, spec in JOBS.items():
            traces = store.parent / run
            synthetic.write_job(traces, spec)
            hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
        hta_sql.publish(store).close()

    with hta_sql.open(made_once(tmp_path_factory, "device-sums", make)) as opened:
        yield opened


def test_sums_of_simulated_jobs_are_the_device_time(simulated: TraceStore) -> None:
    """Each table sums to the device time, including operations without a launch in the trace."""
    assert_all_sums(simulated)


def test_what_no_operator_launched_has_a_row(simulated: TraceStore) -> None:
    """Graph replays and kernels from before the capture have a row in each table by operator."""
    for call, column in (
        ("operator_table_v1()", "name"),
        ("launching_operators_v1()", "name"),
        ("roofline_v1()", "name"),
        ("kernel_table_v1(by_operator := true)", "op_name"),
    ):
        rows = simulated.sql(UNOWNED.format(call=call, column=column)).rows()
        assert rows == [("early", "[no operator]"), ("replays", "[graph replay]")], call


@pytest.mark.parametrize("seed", [0, 1])
def test_sums_of_awkward_traces_are_the_device_time(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Each table sums to the device time despite partial overlaps and calls outside of the tree."""
    with hta_sql.open(store_of_job(tmp_path_factory, seed)) as store:
        assert_all_sums(store)


@pytest.mark.skipif(not (SHARED / "traces").is_dir(), reason="no real traces here")
def test_sums_of_real_traces_are_the_device_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each table sums to the device time of every readable job in the folder of real traces."""

    def make(store: Path) -> None:
        for job in sorted((SHARED / "traces").iterdir()):
            if job.is_dir() and job.name not in ("malformed", MERGED):
                try:
                    hta_sql.ingest_shard(job, store, run=job.name, jobs=1, shard=(1, 1))
                except HtaSqlError:
                    continue
        hta_sql.publish(store).close()

    with hta_sql.open(made_once(tmp_path_factory, "real-traces", make)) as store:
        assert len(store.runs()) > 20
        assert_all_sums(store)
