"""Products of times do not overflow: all analyses of steps of 30 s, and of an event decades before the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.synthetic import JobSpec, write_job
from tests.golden_cases import TRACES
from tests.macros import engine_with, value_in
from tests.shared_stores import made_once

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND

NAMES = sorted(analysis.base_name for analysis in load_library().newest())


def slow_job() -> JobSpec:
    """Return a job with steps of about 30 s, in which matrix products take seconds and rank 1 is 4 s late."""
    return JobSpec(
        ranks=4,
        steps=6,
        layers=2,
        ops_per_layer=3,
        memory_events=True,
        python_stacks=True,
        sync_events=True,
        stragglers={1: 4 * SECOND},
        step_delays=dict.fromkeys(range(10, 16), 10 * SECOND),
        kernel_factors={"nvjet": 20_000.0},
        gzip=False,
    )


def write_stray(folder: Path) -> list[Path]:
    """Write a job with timestamps since 1970, and an event of each kind at timestamp 0 on its rank."""
    spec = JobSpec(
        ranks=6, steps=3, layers=2, ops_per_layer=3, base_time_ns=0, start_ns=EPOCH, gzip=False
    )
    files = list(write_job(folder, spec).files)
    kinds = ("cpu_op", "kernel", "cuda_runtime", "gpu_memcpy", "cpu_op", "kernel")
    for kind, path in zip(kinds, files, strict=True):
        trace = json.loads(path.read_text(encoding="utf-8"))
        event = next(e for e in trace["traceEvents"] if e.get("cat") == kind)
        trace["traceEvents"].append(event | {"ts": 0, "dur": 1, "name": "stray"})
        path.write_text(json.dumps(trace), encoding="utf-8")
    return files


def ingested(folder: Path, files: list[Path]) -> None:
    """Ingest a trace per rank as the only run of a store."""
    ranks = {rank: str(path) for rank, path in enumerate(files)}
    hta_sql.ingest(ranks, folder / "job.store", run="run", jobs=1).close()


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the job with long steps."""
    store = made_once(
        tmp_path_factory,
        "long_steps",
        lambda path: ingested(path.parent, list(write_job(path.parent / "job", slow_job()).files)),
    )
    with hta_sql.open(store) as opened:
        yield opened


@pytest.fixture(scope="module")
def stray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest the job with stray events."""
    store = made_once(
        tmp_path_factory,
        "stray_events",
        lambda path: ingested(path.parent, write_stray(path.parent / "job")),
    )
    with hta_sql.open(store) as opened:
        yield opened


def test_the_long_job_has_long_steps(slow: hta_sql.TraceStore) -> None:
    """Steps last 20 to 60 s, and matrix products take more than 3 s in total on each rank."""
    for (step_ns,) in slow.sql("SELECT dur FROM steps").rows():
        assert 20 * SECOND < step_ns < 60 * SECOND
    totals = slow.sql("SELECT sum(dur) FROM gpu_ops WHERE starts_with(name, 'nvjet') GROUP BY rank")
    assert min(total for (total,) in totals.rows()) > 3 * SECOND


def test_the_stray_events_are_decades_before_the_others(stray: hta_sql.TraceStore) -> None:
    """Every rank extends from 1970 to the job."""
    assert min(dur for (dur,) in stray.sql("SELECT dur FROM ranks").rows()) > EPOCH - SECOND


@pytest.mark.parametrize("name", NAMES)
def test_an_analysis_of_long_steps(name: str, slow: hta_sql.TraceStore) -> None:
    """No analysis fails on steps of 30 s."""
    slow.run(name).arrow()


@pytest.mark.parametrize("name", NAMES)
def test_an_analysis_of_a_trace_with_a_stray_event(name: str, stray: hta_sql.TraceStore) -> None:
    """No analysis fails on a trace that extends over decades."""
    stray.run(name).arrow()


def test_lateness_of_seconds(slow: hta_sql.TraceStore) -> None:
    """Rank 1 is the straggler: it loads data 4 s longer in each of the 5 steps that are compared."""
    rows = {row["rank"]: row for row in slow.run("stragglers").records()}
    assert [rank for rank, row in rows.items() if row["is_straggler"]] == [1]
    assert rows[1]["late_ns"] == pytest.approx(4 * SECOND * rows[1]["step_count"], rel=0.25)
    assert rows[1]["cause"] == "data loading"


def test_a_single_bucket_of_decades(stray: hta_sql.TraceStore) -> None:
    """The time of all ranks, more than 300 years, may be one bucket of the timeline."""
    stray.run("timeline", bucket_count=1).arrow()


def test_an_impossible_message_size_is_unknown() -> None:
    """A size beyond BIGINT is unknown."""
    con = engine_with(("elem_bytes", "message_bytes"))
    sizes = [
        value_in(con, "lib.message_bytes('all_reduce', 'Float', $1, $1)", [count])
        for count in (1024, 2**62)
    ]
    assert sizes == [4096, None]


def test_an_impossible_grid_has_an_unknown_number_of_blocks(
    ingest_trace: Callable[..., hta_sql.TraceStore],
) -> None:
    """A recorded grid beyond any device does not stop the analysis of expert parallelism."""
    trace = json.loads((TRACES / "expert_parallel_0.json").read_text(encoding="utf-8"))
    for event in trace["traceEvents"]:
        if "grid" in event.get("args", {}):
            event["args"]["grid"] = [2**31] * 3
    rows = ingest_trace({0: trace["traceEvents"]}).run("expert_parallel").records()
    assert rows
    assert {row["block_count"] for row in rows} == {None}
