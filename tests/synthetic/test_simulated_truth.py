"""Verify the truth about a simulated job.

The truth is computed from the records of the simulator. Here it is checked against the files, by
independent code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hta_sql.synthetic import Job, JobSpec, write_job
from tests.synthetic.counting import truth_of
from tests.synthetic.simulated import BUSY, EVERYTHING, SMALL, class_of, events_of, length, load


def test_a_job_counts_the_events_of_its_files(job: Job) -> None:
    """The event counts of a job equal those of its files, including metadata events."""
    assert job.events == [len(load(file)["traceEvents"]) for file in job.files]


def test_truth_measures_the_files(job: Job) -> None:
    """Times computed here by merging intervals equal those of the truth, computed by sweeping."""
    for file, rank in zip(job.files, truth_of(job).ranks, strict=True):
        ops = events_of(file, *BUSY)
        time = rank.all.time
        by_class = {
            name: [op for op in ops if class_of(op) == name]
            for name in ("computation", "communication", "memory")
        }
        compute, communication = by_class["computation"], by_class["communication"]
        assert time.busy_ns == length(ops)
        assert time.compute_ns == length(compute)
        assert time.communication_ns == length(communication)
        assert time.memory_ns == length(by_class["memory"])
        assert time.exposed_communication_ns == length(compute + communication) - length(compute)
        assert time.exposed_memory_ns == length(ops) - length(compute + communication)
        assert {(o.kind, o.name, o.count, o.sum_ns) for o in rank.all.ops} == {
            (*key, len(durs), sum(durs))
            for key in {(op["cat"], op["name"]) for op in ops}
            for durs in [[op["dur"] for op in ops if (op["cat"], op["name"]) == key]]
        }


@pytest.mark.parametrize("spec", [SMALL, EVERYTHING, replace(SMALL, ranks=1, steps=1)])
def test_truth_adds_up(spec: JobSpec, tmp_path: Path) -> None:
    """Compute, exposed communication, exposed memory and idle sum to the span, in both scopes."""
    for rank in truth_of(write_job(tmp_path, spec)).ranks:
        for scope in (rank.all, rank.default):
            time = scope.time
            exposed = time.exposed_communication_ns + time.exposed_memory_ns
            assert time.compute_ns + time.non_compute_ns + time.idle_ns == time.span_ns
            assert time.compute_ns + exposed + time.idle_ns == time.span_ns
            assert sum(time.class_sets.values()) == time.busy_ns
            assert min(time.busy_ns, time.idle_ns, time.compute_ns) > 0


def test_default_scope_leaves_out_the_last_step(job: Job) -> None:
    """The default scope excludes GPU work that was launched, or else started, in the last step."""
    for file, rank in zip(job.files, truth_of(job).ranks, strict=True):
        steps = [
            e for e in events_of(file, "user_annotation") if e["name"].startswith("ProfilerStep")
        ]
        assert [(s.number, s.ts, s.dur) for s in rank.steps] == [
            (int(e["name"].split("#")[1]), e["ts"], e["dur"]) for e in steps
        ]
        calls = {
            e["args"]["correlation"]: e["ts"]
            for e in events_of(file, "cuda_runtime", "cuda_driver")
        }
        kept = [
            op
            for op in events_of(file, *BUSY)
            if calls.get(op["args"]["correlation"], op["ts"]) < steps[-1]["ts"]
        ]
        assert sum(o.count for o in rank.default.ops) == len(kept)
        assert rank.default.time.busy_ns == length(kept)


def test_every_overlap_of_classes_occurs(tmp_path: Path) -> None:
    """Computation, communication and copies occur alone and in every combination."""
    sets = truth_of(write_job(tmp_path, replace(SMALL, layers=4))).ranks[0].all.time.class_sets
    assert set(sets) == {
        "communication",
        "communication+computation",
        "communication+computation+memory",
        "communication+memory",
        "computation",
        "computation+memory",
        "memory",
    }


def test_a_single_step_is_not_left_out(tmp_path: Path) -> None:
    """With a single profiler step, both scopes cover the whole trace."""
    for rank in truth_of(write_job(tmp_path, replace(SMALL, steps=1))).ranks:
        assert rank.default == rank.all


def test_idle_gaps_have_every_cause(tmp_path: Path) -> None:
    """The compute stream waits for the host, for queued kernels and for other streams."""
    for rank in truth_of(write_job(tmp_path, SMALL)).ranks:
        causes = {gap.cause for gap in rank.all.idle_gaps if gap.stream == 7}
        assert causes == {"host_wait", "kernel_wait", "other"}


def test_idle_gaps_of_one_stream_add_up(job: Job) -> None:
    """The gaps and operations of a stream fill the time from its first to its last operation."""
    for file, rank in zip(job.files, truth_of(job).ranks, strict=True):
        for stream in {gap.stream for gap in rank.all.idle_gaps}:
            ops = [op for op in events_of(file, *BUSY) if op["tid"] == stream]
            span = max(op["ts"] + op["dur"] for op in ops) - min(op["ts"] for op in ops)
            idle = sum(gap.sum_ns for gap in rank.all.idle_gaps if gap.stream == stream)
            assert idle + length(ops) == span


def test_an_operation_without_launch_never_waits_for_the_host(tmp_path: Path) -> None:
    """Without a recorded launch call, no gap is attributed to the host."""
    lost = truth_of(write_job(tmp_path, replace(SMALL, lost_launch_every=1)))
    for rank in lost.ranks:
        assert not [gap for gap in rank.all.idle_gaps if gap.cause == "host_wait"]
        assert rank.all.launches == []


def test_one_graph_launch_pairs_with_many_kernels(job: Job) -> None:
    """The kernels of a CUDA graph share the correlation id of their launch call."""
    calls = [e for e in events_of(job.files[0], "cuda_runtime") if e["name"] == "cudaGraphLaunch"]
    kernels = Counter(e["args"]["correlation"] for e in events_of(job.files[0], "kernel"))
    totals = {launch.call: launch for launch in truth_of(job).ranks[0].all.launches}
    assert all(kernels[call["args"]["correlation"]] == 8 for call in calls)
    assert totals["cudaGraphLaunch"].count == 8 * len(calls)


def test_launch_delay_counts_from_the_end_of_the_call(job: Job) -> None:
    """The launch delay runs from the call's end to the operation's start, and is at least 0."""
    ops = events_of(job.files[0], *BUSY)
    calls = {
        e["args"]["correlation"]: e for e in events_of(job.files[0], "cuda_runtime", "cuda_driver")
    }
    pairs = [(calls[c], op) for op in ops if (c := op["args"]["correlation"]) in calls]
    launches = truth_of(job).ranks[0].all.launches
    assert len(pairs) < len(ops)
    assert sum(launch.count for launch in launches) == len(pairs)
    assert sum(launch.delay_ns for launch in launches) == sum(
        max(0, op["ts"] - call["ts"] - call["dur"]) for call, op in pairs
    )


def test_a_straggler_makes_the_others_wait(tmp_path: Path) -> None:
    """The rank that loads data longer does not wait at the first collective; the others do."""
    truth = truth_of(write_job(tmp_path, replace(SMALL, ranks=4, stragglers={2: 3_000_000})))
    first = [c for c in truth.collectives if c.step == 10 and c.index == 0]
    assert truth.stragglers == {2: 3_000_000}
    assert {c.rank for c in first if c.wait_ns == 0} == {2}
    assert all(c.wait_ns > 2_000_000 for c in first if c.rank != 2)
    assert len({c.transfer_ns for c in first}) == 1


def test_slow_kernels_make_a_rank_late(tmp_path: Path) -> None:
    """A rank whose kernels take twice as long arrives last at a collective."""
    truth = truth_of(write_job(tmp_path, replace(SMALL, slow_kernels={1: 2.0})))
    last = [c for c in truth.collectives if c.index == 1]
    assert truth.slow_kernels == {1: 2.0}
    assert {c.rank for c in last if c.wait_ns == 0} == {1}


def test_a_collective_ends_everywhere_at_once(tmp_path: Path) -> None:
    """A collective ends at the same time on all ranks, after correction of clock offsets."""
    offsets = {1: 5_000_000_123, 2: -777}
    spec = replace(SMALL, ranks=3, clock_offsets_ns=offsets)
    ends: dict[tuple[int, int], set[int]] = {}
    for c in truth_of(write_job(tmp_path, spec)).collectives:
        end = c.arrival_ns + c.wait_ns + c.transfer_ns - offsets.get(c.rank, 0)
        ends.setdefault((c.step, c.index), set()).add(end)
    assert len(ends) == spec.steps * spec.layers
    assert all(len(instants) == 1 for instants in ends.values())
