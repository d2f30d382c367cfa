"""Parameters of simulated jobs: sizes, clocks, names and optional events."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hta_sql.synthetic import JobSpec, write_job
from tests.synthetic.counting import truth_of
from tests.synthetic.simulated import SMALL, events_of, load
from tests.synthetic.sizing import spec_for_events


def test_clocks_move_events_and_nothing_else(tmp_path: Path) -> None:
    """A clock offset shifts every `ts` of a rank; a base shift moves time into the header."""
    plain = write_job(tmp_path / "plain", SMALL)
    spec = replace(SMALL, clock_offsets_ns={1: 1_234_567}, base_shifts_ns={1: 1_000_000})
    moved = write_job(tmp_path / "moved", spec)
    before, after = (load(job.files[1])["traceEvents"] for job in (plain, moved))
    assert {b["ts"] - a["ts"] for a, b in zip(before, after, strict=True)} == {234_567}
    assert plain.files[0].read_bytes() == moved.files[0].read_bytes()
    assert truth_of(plain).ranks[1].all == truth_of(moved).ranks[1].all


@pytest.mark.parametrize(
    ("names", "kernel", "dtype"),
    [
        ("modern", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(", "BFloat16"),
        ("old", "ncclKernel_AllReduce_RING_LL_Sum_float(", "Float"),
    ],
)
@pytest.mark.parametrize("metadata", [True, False])
def test_collectives_are_named_as_asked(
    tmp_path: Path, names: Any, kernel: str, dtype: str, *, metadata: bool
) -> None:
    """Kernel names are modern or old; kernels and operators both have metadata, or neither."""
    spec = replace(SMALL, nccl_names=names, collective_metadata=metadata)
    file = write_job(tmp_path, spec).files[0]
    nccl = [e for e in events_of(file, "kernel") if e["name"].startswith("nccl")]
    operators = [e for e in events_of(file, "cpu_op") if e["name"] == "record_param_comms"]
    assert len(nccl) == len(operators) == spec.steps * spec.layers
    for event in nccl:
        assert event["name"].startswith(kernel)
    for event in nccl + operators:
        assert event["args"].get("dtype") == (dtype if metadata else None)
        assert event["args"].get("Process Group Ranks") == ("[0, 1]" if metadata else None)


def test_optional_events_are_off_by_default(tmp_path: Path) -> None:
    """Memory, Python, sync events, graphs and lost launches appear only on request."""
    job = write_job(tmp_path, SMALL)
    wanted = {"cpu_instant_event", "python_function", "cuda_sync"}
    for file, rank in zip(job.files, truth_of(job).ranks, strict=True):
        assert not wanted & {event.get("cat") for event in load(file)["traceEvents"]}
        assert sum(o.count for o in rank.all.ops) == sum(c.count for c in rank.all.launches)
        assert "cudaGraphLaunch" not in {launch.call for launch in rank.all.launches}


@pytest.mark.parametrize("wanted", [10_000, 60_000])
def test_size_is_a_knob(tmp_path: Path, wanted: int) -> None:
    """The number of events of a job can be chosen."""
    spec = spec_for_events(wanted, JobSpec(ranks=1, python_stacks=True, memory_events=True))
    assert write_job(tmp_path, spec).events[0] == pytest.approx(wanted, rel=0.05)


def test_memory_does_not_grow_with_steps(tmp_path: Path) -> None:
    """Writing ten times the steps takes the same memory: only one step is in memory at a time."""

    def peak(steps: int) -> int:
        tracemalloc.start()
        write_job(tmp_path / str(steps), replace(SMALL, steps=steps))
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return top

    peak(1)
    assert peak(40) < 1.2 * peak(4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranks": 0}, "ranks must be at least 1"),
        ({"lost_launch_every": -1}, "lost_launch_every must not be negative"),
        ({"nccl_names": "new"}, "nccl_names must be"),
        ({"host_name": "a/b"}, "host_name must be"),
        ({"stragglers": {8: 1}}, r"stragglers names ranks that the job does not have: \[8\]"),
        ({"slow_kernels": {0: 0.0}}, "slow_kernels must be positive"),
        ({"clock_offsets_ns": {0: 10**15}}, "within an hour"),
        ({"start_ns": 5, "clock_offsets_ns": {0: -6}}, "at or above zero"),
    ],
)
def test_impossible_jobs_are_refused(wrong: dict[str, Any], message: str) -> None:
    """A spec with invalid values is refused."""
    with pytest.raises(ValueError, match=message):
        JobSpec(**wrong)


def test_an_empty_wish_is_refused() -> None:
    """A job with no events is refused."""
    with pytest.raises(ValueError, match="at least 1"):
        spec_for_events(0)
