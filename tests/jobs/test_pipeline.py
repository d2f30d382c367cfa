"""The stages, micro-batches, bubbles and messages of planted pipelines match the simulator."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.jobs.conftest import Jobs
from tests.jobs.kinds import KINDS, LINKS
from tests.jobs.simulator import COMPUTE, PP_STREAM
from tests.jobs.traces import Trace

PIPELINES = [run for run, job in KINDS.items() if job.stages > 1]

LAYERS = {"compute": 0, "other": 1, "send": 2, "recv": 3}


def rows(jobs: Jobs, name: str, run: str) -> list[dict[str, Any]]:
    """Return the rows of an analysis for one run, including the last step."""
    call = f"FROM {name}(runs := [$run], include_last_profiler_step := true)"
    return list(jobs.con.sql(call, params={"run": run}).to_arrow_table().to_pylist())


def kernels_of_steps(trace: Trace) -> dict[int, list[tuple[int, int, str]]]:
    """Return the start, end and kind of the kernels that were launched in each step."""
    launched = {
        e.event.correlation: e.ts for e in trace.events if e.event.category == "cuda_runtime"
    }
    found = {}
    for step in (e for e in trace.events if e.event.name.startswith("ProfilerStep")):
        found[int(step.event.name.partition("#")[2])] = [
            (e.ts, e.end, kind_of(e.event.stream, e.args.get("Collective name")))
            for e in trace.events
            if e.event.stream is not None and step.ts <= launched[e.event.correlation] < step.end
        ]
    return found


def kind_of(stream: int | None, name: str | None) -> str:
    """Return the kind of a kernel: compute, send, recv or other."""
    if stream == COMPUTE:
        return "compute"
    return name if stream == PP_STREAM and name else "other"


def parts_of(kernels: list[tuple[int, int, str]]) -> list[int]:
    """Return the length of the span of compute kernels, and its parts, by brute force.

    The parts are the idle time and the time of each kind of kernel that does not overlap a kind
    with a higher priority.
    """
    start = min(a for a, _, kind in kernels if kind == "compute")
    end = max(b for _, b, kind in kernels if kind == "compute")
    cuts = sorted({start, end, *(t for a, b, _ in kernels for t in (a, b) if start < t < end)})
    parts = [0] * 5
    for a, b in pairwise(cuts):
        running = [LAYERS[kind] for s, e, kind in kernels if s <= a and e >= b]
        parts[min(running, default=4)] += b - a
    return [end - start, *parts]


@pytest.mark.parametrize("run", PIPELINES)
def test_stages_and_micro_batches_are_those_of_the_job(jobs: Jobs, run: str) -> None:
    """The stage and the micro-batch count of every rank and step match the job."""
    job, _ = jobs.runs[run]
    found = rows(jobs, "pipeline_stages", run)
    assert {(row["rank"], row["step"]) for row in found} == {
        (rank, step) for rank in range(job.ranks) for step in range(job.steps)
    }
    for row in found:
        assert row["stage"] == job.stage_of(row["rank"])
        assert row["stage_count"] == job.stages
        assert row["pipeline"] == row["rank"] % (job.ranks // job.stages)
        assert row["micro_batch_count"] == job.micro_batches


@pytest.mark.parametrize("run", PIPELINES)
def test_bubbles_are_those_of_a_brute_force(jobs: Jobs, run: str) -> None:
    """The parts of a step, including bubbles, equal a brute-force count and sum to its span."""
    _, traces = jobs.runs[run]
    kernels = {trace.did.rank: kernels_of_steps(trace) for trace in traces}
    names = ("span_ns", "compute_ns", "exposed_other_ns", "send_alone_ns", "receive_alone_ns")
    lengths: dict[tuple[int, int], set[int]] = {}
    for row in rows(jobs, "pipeline_stages", run):
        parts = parts_of(kernels[row["rank"]][row["step"]])
        assert [*(row[name] for name in names), row["idle_ns"]] == parts
        assert sum(parts[1:]) == parts[0]
        assert row["bubble_ns"] == parts[4] + parts[5]
        assert row["warm_up_ns"] + row["span_ns"] + row["cool_down_ns"] == row["pipeline_ns"]
        lengths.setdefault((row["pipeline"], row["step"]), set()).add(row["pipeline_ns"])
    assert all(len(same) == 1 for same in lengths.values())


@pytest.mark.parametrize("run", PIPELINES)
def test_messages_are_those_of_the_simulator(jobs: Jobs, run: str) -> None:
    """Sends and receives are paired as in the simulator, with waits that agree within 2 us."""
    parts = {
        (part.group[0], part.group[1], part.name, part.rank, part.event): part
        for part in jobs.collectives(run)
        if part.kind == "pp"
    }
    found = rows(jobs, "p2p_pairs", run)
    assert 2 * len(found) == len(parts)
    for row in found:
        pair = (row["src_rank"], row["dst_rank"])
        send = parts[(*pair, "send", row["src_rank"], row["send_id"])]
        receive = parts[(*pair, "recv", row["dst_rank"], row["recv_id"])]
        assert send.key == receive.key
        assert abs(row["send_wait_ns"] - send.wait) <= 2_000
        assert abs(row["recv_wait_ns"] - receive.wait) <= 2_000
        assert abs(row["transfer_ns"] - send.transfer) <= 2_000
        assert row["is_forward"] == (row["src_rank"] < row["dst_rank"])


def test_nobody_is_a_pipeline_without_messages(jobs: Jobs) -> None:
    """Runs without a pipeline have no rows."""
    for name in ("pipeline_stages", "p2p_pairs"):
        runs = jobs.con.execute(f"FROM {name}()").fetchall()
        assert {run for run, *_ in runs} == {*PIPELINES, *LINKS, "slow stage"}


@pytest.mark.parametrize(
    "name", ["pipeline_stages", "p2p_pairs", "cluster_step_trace", "cluster_step_means"]
)
def test_equal_rows_on_any_number_of_threads(jobs: Jobs, name: str) -> None:
    """The rows do not depend on the number of threads."""
    found = []
    for threads in (1, 2, 5):
        jobs.con.execute(f"SET threads = {threads}")
        found.append(jobs.con.execute(f"FROM {name}()").fetchall())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("run", PIPELINES)
def test_receiving_alone_and_stage_time_are_those_of_a_brute_force(jobs: Jobs, run: str) -> None:
    """The receive and stage times of each step match a brute-force count."""
    _, traces = jobs.runs[run]
    found = {(row["rank"], row["step"]): row for row in rows(jobs, "cluster_step_trace", run)}
    for trace in traces:
        steps = kernels_of_steps(trace)
        kernels = [kernel for listed in steps.values() for kernel in listed]
        ends = 0
        for event in (e for e in trace.events if e.event.name.startswith("ProfilerStep")):
            step = int(event.event.name.partition("#")[2])
            start = max(ends, event.ts)
            ends = max(start, event.end, *(end for _, end, _ in steps[step]))
            inside = [(max(a, start), min(b, ends), k) for a, b, k in kernels]
            computed, other, sent, received, _ = parts_of(
                [(start, start, "compute"), (ends, ends, "compute"), *inside]
            )[1:]
            row = found[trace.did.rank, step]
            assert row["total_ns"] == ends - start
            assert row["computation_ns"] == computed
            assert row["receive_alone_ns"] == received
            assert row["collective_alone_ns"] == other + sent
            assert row["communication_alone_ns"] == received + other + sent
            assert row["stage_ns"] == row["total_ns"] - received


def test_a_job_without_a_pipeline_has_no_stage_time(jobs: Jobs) -> None:
    """Without a pipeline, receive and stage times are NULL."""
    found = rows(jobs, "cluster_step_trace", "slower clocks")
    assert found
    assert {(r["receive_alone_ns"], r["collective_alone_ns"], r["stage_ns"]) for r in found} == {
        (None, None, None)
    }
