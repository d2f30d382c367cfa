"""Synthetic jobs: the files look like torch's, and the truth about them is true.

The truth is counted on the records of the simulator. Here it is checked against the files,
by code that shares nothing with it.
"""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.synthetic import Job, JobSpec, Truth, spec_for_events, write_job

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Event = dict[str, Any]

SMALL = JobSpec(ranks=2, steps=3, layers=2)
EVERYTHING = replace(
    SMALL,
    comm_streams=2,
    memory_events=True,
    python_stacks=True,
    sync_events=True,
    graph_launches=True,
    early_kernels=3,
    lost_launch_every=7,
    clock_offsets_ns={1: 4_000_001},
    base_shifts_ns={1: 1_000_000_007},
    slow_kernels={1: 1.5},
)
BUSY = ("kernel", "gpu_memcpy", "gpu_memset")


def load(path: Path) -> dict[str, Any]:
    """Read a trace; times come as exact integers of nanoseconds."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal)
    for event in trace["traceEvents"]:
        for key in event.keys() & {"ts", "dur"}:
            event[key] = int(event[key] * 1000)
    return trace


def events_of(path: Path, *categories: str) -> list[Event]:
    """Return the complete events of some categories."""
    return [
        event
        for event in load(path)["traceEvents"]
        if event.get("cat") in categories and event["ph"] == "X"
    ]


def class_of(event: Event) -> str:
    """Class of a GPU operation, from its category and name."""
    if event["cat"] != "kernel":
        return "memory"
    return "communication" if event["name"].startswith("nccl") else "computation"


def covered(spans: Iterable[tuple[int, int]]) -> set[range]:
    """Merge spans into disjoint ranges."""
    merged: list[range] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, end))
        else:
            merged.append(range(start, end))
    return set(merged)


def length(events: Iterable[Event]) -> int:
    """Time with at least one of the events running."""
    return sum(len(r) for r in covered((e["ts"], e["ts"] + e["dur"]) for e in events))


def truth_of(job: Job) -> Truth:
    """Return the truth of a job that was asked for it."""
    assert job.truth is not None
    return job.truth


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Write a job with every feature on."""
    return write_job(tmp_path_factory.mktemp("everything"), EVERYTHING)


def test_equal_specs_give_equal_bytes(tmp_path: Path) -> None:
    """Writing a job again gives the same files, wherever they lie; another seed does not."""
    once, again, other = (
        write_job(tmp_path / name, replace(EVERYTHING, seed=seed))
        for name, seed in (("once", 0), ("again", 0), ("other", 1))
    )
    assert [f.name for f in once.files] == [f.name for f in again.files]
    assert [f.read_bytes() for f in once.files] == [f.read_bytes() for f in again.files]
    assert truth_of(once) == truth_of(again)
    assert once.files[0].read_bytes() != other.files[0].read_bytes()


def test_files_are_named_as_torch_names_them(tmp_path: Path) -> None:
    """A file says its rank, host, process and time; `gzip=False` writes plain JSON."""
    packed = write_job(tmp_path, SMALL).files
    plain = write_job(tmp_path, replace(SMALL, gzip=False)).files
    pattern = r"rank\d\.node-0_\d+\.\d+\.pt\.trace\.json"
    assert all(re.fullmatch(pattern + r"\.gz", file.name) for file in packed)
    assert all(re.fullmatch(pattern, file.name) for file in plain)
    assert gzip.decompress(packed[1].read_bytes()).replace(b".json.gz", b".json") == (
        plain[1].read_bytes()
    )


def test_header_describes_the_job(job: Job) -> None:
    """The header has rank, world size, process groups and base time, as torch writes them."""
    trace = load(job.files[1])
    info = trace["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"]) == ("nccl", 1, 2)
    assert [group["ranks"] for group in info["pg_config"]] == [[0, 1], [0, 1]]
    assert trace["baseTimeNanoseconds"] == EVERYTHING.base_time_ns + 1_000_000_007
    assert trace["traceName"] == job.files[1].name
    assert [gpu["id"] for gpu in trace["deviceProperties"]] == [0, 1]
    assert trace["traceEvents"][-1]["name"] == "Record Window End"


def test_fields_have_the_types_of_real_traces(job: Job) -> None:
    """Times are decimals with three digits, ids are integers, sizes are numbers."""
    text = gzip.decompress(job.files[0].read_bytes()).decode()
    assert re.fullmatch(r"\d+\.\d{3}", text.split('"ts": ')[1].split(",")[0])
    for event in load(job.files[0])["traceEvents"]:
        args = event.get("args", {})
        assert event["ph"] in {"X", "i", "s", "f", "M"}
        assert event["ph"] != "X" or event["dur"] >= 0
        if event.get("cat") in BUSY:
            assert isinstance(args["correlation"], int)
            assert isinstance(args["stream"], int)
            assert event["tid"] == args["stream"]
        if event.get("cat") in BUSY[1:]:
            assert float(args["memory bandwidth (GB/s)"]) == pytest.approx(
                args["bytes"] / event["dur"]
            )


def test_operators_of_a_thread_are_nested(job: Job) -> None:
    """On one thread, of two operators or calls one encloses the other, or they do not meet."""
    threads: dict[int, list[Event]] = {}
    for event in events_of(
        job.files[0], "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"
    ):
        threads.setdefault(event["tid"], []).append(event)
    assert len(threads) == 2
    for events in threads.values():
        open_until: list[int] = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            assert not open_until or event["ts"] + event["dur"] <= open_until[-1]
            open_until.append(event["ts"] + event["dur"])


def test_work_on_a_stream_never_overlaps(job: Job) -> None:
    """A stream runs one operation at a time, none before its launch call began."""
    for file in job.files:
        calls = {
            e["args"]["correlation"]: e["ts"]
            for e in events_of(file, "cuda_runtime", "cuda_driver")
        }
        free: dict[int, int] = {}
        for op in sorted(events_of(file, *BUSY), key=lambda e: e["ts"]):
            assert op["ts"] >= free.get(op["tid"], 0)
            assert op["ts"] > calls.get(op["args"]["correlation"], 0)
            free[op["tid"]] = op["ts"] + op["dur"]


def test_truth_counts_the_events_of_the_files(job: Job) -> None:
    """Event counts by category are those of the file."""
    for file, rank, total in zip(job.files, truth_of(job).ranks, job.events, strict=True):
        events = load(file)["traceEvents"]
        assert Counter(e.get("cat", e["ph"]) for e in events) == rank.events
        assert total == len(events)


def test_truth_measures_the_files(job: Job) -> None:
    """Unions of intervals, found here by merging, are what the truth found by sweeping."""
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
    """Compute, exposed communication, exposed memory and idle make the span, in both scopes."""
    for rank in truth_of(write_job(tmp_path, spec)).ranks:
        for scope in (rank.all, rank.default):
            time = scope.time
            exposed = time.exposed_communication_ns + time.exposed_memory_ns
            assert time.compute_ns + time.non_compute_ns + time.idle_ns == time.span_ns
            assert time.compute_ns + exposed + time.idle_ns == time.span_ns
            assert sum(time.class_sets.values()) == time.busy_ns
            assert min(time.busy_ns, time.idle_ns, time.compute_ns) > 0


def test_default_scope_leaves_out_the_last_step(job: Job) -> None:
    """GPU work launched in the last step is out, by its own start where no launch is recorded."""
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
    """Computation, communication and copies run alone and together, in every combination."""
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
    """With one profiler step, both scopes are the whole trace."""
    for rank in truth_of(write_job(tmp_path, replace(SMALL, steps=1))).ranks:
        assert rank.default == rank.all


def test_idle_gaps_have_every_cause(tmp_path: Path) -> None:
    """The compute stream waits for the host, for queued kernels and for other streams."""
    for rank in truth_of(write_job(tmp_path, SMALL)).ranks:
        causes = {gap.cause for gap in rank.all.idle_gaps if gap.stream == 7}
        assert causes == {"host_wait", "kernel_wait", "other"}


def test_idle_gaps_of_one_stream_add_up(job: Job) -> None:
    """The gaps of a stream and its work fill the time from its first to its last operation."""
    for file, rank in zip(job.files, truth_of(job).ranks, strict=True):
        for stream in {gap.stream for gap in rank.all.idle_gaps}:
            ops = [op for op in events_of(file, *BUSY) if op["tid"] == stream]
            span = max(op["ts"] + op["dur"] for op in ops) - min(op["ts"] for op in ops)
            idle = sum(gap.sum_ns for gap in rank.all.idle_gaps if gap.stream == stream)
            assert idle + length(ops) == span


def test_an_operation_without_launch_never_waits_for_the_host(tmp_path: Path) -> None:
    """Where no launch call is in the trace, no gap can be blamed on the host."""
    lost = truth_of(write_job(tmp_path, replace(SMALL, lost_launch_every=1)))
    for rank in lost.ranks:
        assert not [gap for gap in rank.all.idle_gaps if gap.cause == "host_wait"]
        assert rank.all.launches == []


def test_one_graph_launch_pairs_with_many_kernels(job: Job) -> None:
    """The kernels of a CUDA graph share the correlation of their one launch call."""
    calls = [e for e in events_of(job.files[0], "cuda_runtime") if e["name"] == "cudaGraphLaunch"]
    kernels = Counter(e["args"]["correlation"] for e in events_of(job.files[0], "kernel"))
    totals = {launch.call: launch for launch in truth_of(job).ranks[0].all.launches}
    assert all(kernels[call["args"]["correlation"]] == 8 for call in calls)
    assert totals["cudaGraphLaunch"].count == 8 * len(calls)


def test_launch_delay_counts_from_the_end_of_the_call(job: Job) -> None:
    """A pair's delay is from the end of its call to the start of its work, and never negative."""
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
    """The rank that loads data longer waits for nobody at the first collective; the others do."""
    truth = truth_of(write_job(tmp_path, replace(SMALL, ranks=4, stragglers={2: 3_000_000})))
    first = [c for c in truth.collectives if c.step == 10 and c.index == 0]
    assert truth.stragglers == {2: 3_000_000}
    assert {c.rank for c in first if c.wait_ns == 0} == {2}
    assert all(c.wait_ns > 2_000_000 for c in first if c.rank != 2)
    assert len({c.transfer_ns for c in first}) == 1


def test_slow_kernels_make_a_rank_late(tmp_path: Path) -> None:
    """A rank whose kernels take twice as long is the last to arrive."""
    truth = truth_of(write_job(tmp_path, replace(SMALL, slow_kernels={1: 2.0})))
    last = [c for c in truth.collectives if c.index == 1]
    assert truth.slow_kernels == {1: 2.0}
    assert {c.rank for c in last if c.wait_ns == 0} == {1}


def test_a_collective_ends_everywhere_at_once(tmp_path: Path) -> None:
    """Arrival, wait and transfer end at one instant, once clock offsets are taken off."""
    offsets = {1: 5_000_000_123, 2: -777}
    spec = replace(SMALL, ranks=3, clock_offsets_ns=offsets)
    ends: dict[tuple[int, int], set[int]] = {}
    for c in truth_of(write_job(tmp_path, spec)).collectives:
        end = c.arrival_ns + c.wait_ns + c.transfer_ns - offsets.get(c.rank, 0)
        ends.setdefault((c.step, c.index), set()).add(end)
    assert len(ends) == spec.steps * spec.layers
    assert all(len(instants) == 1 for instants in ends.values())


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
    """Kernel names are old or modern; metadata stands on kernels and operators, or nowhere."""
    spec = replace(SMALL, nccl_names=names, collective_metadata=metadata)
    file = write_job(tmp_path, spec, truth=False).files[0]
    nccl = [e for e in events_of(file, "kernel") if e["name"].startswith("nccl")]
    operators = [e for e in events_of(file, "cpu_op") if e["name"] == "record_param_comms"]
    assert len(nccl) == len(operators) == spec.steps * spec.layers
    for event in nccl:
        assert event["name"].startswith(kernel)
    for event in nccl + operators:
        assert event["args"].get("dtype") == (dtype if metadata else None)
        assert event["args"].get("Process Group Ranks") == ("[0, 1]" if metadata else None)


def test_forward_and_backward_are_joined(job: Job) -> None:
    """Each forward arrow ends in a backward operator with the same sequence number."""
    events = load(job.files[0])["traceEvents"]
    ends: dict[str, dict[int, Event]] = {"s": {}, "f": {}}
    for event in events:
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]][event["id"]] = event
    sequences: dict[str, dict[int, int]] = {"s": {}, "f": {}}
    for phase, flows in ends.items():
        for flow, point in flows.items():
            enclosing = [
                e
                for e in events
                if e.get("cat") == "cpu_op"
                and e["tid"] == point["tid"]
                and e["ts"] <= point["ts"] <= e["ts"] + e["dur"]
                and "Sequence number" in e["args"]
            ]
            innermost = min(enclosing, key=lambda e: e["dur"])
            sequences[phase][flow] = innermost["args"]["Sequence number"]
    assert sequences["s"] == sequences["f"]
    assert len(sequences["s"]) == EVERYTHING.steps * EVERYTHING.layers * EVERYTHING.ops_per_layer


def test_memory_is_released_as_allocated(job: Job) -> None:
    """Allocated totals are the running sum of the instants, and each address is freed again."""
    instants = [e for e in load(job.files[1])["traceEvents"] if e.get("name") == "[memory]"]
    allocated, live = 0, Counter[int]()
    for instant in sorted(instants, key=lambda e: e["ts"]):
        args = instant["args"]
        allocated += args["Bytes"]
        live[args["Addr"]] += args["Bytes"]
        assert args["Total Allocated"] == allocated <= args["Total Reserved"]
        assert (args["Device Type"], args["Device Id"]) == (1, 1)
    assert instants
    assert set(live.values()) == {0}


def test_python_frames_have_parents(job: Job) -> None:
    """Each frame lies within its parent, up to the one root; modules carry a module id."""
    frames = {e["args"]["Python id"]: e for e in events_of(job.files[0], "python_function")}
    roots = [f for f in frames.values() if f["args"]["Python parent id"] is None]
    assert [root["name"] for root in roots] == ["train.py(131): <module>"]
    for frame in frames.values():
        assert ("Python module id" in frame["args"]) == frame["name"].startswith("nn.Module: ")
        if frame not in roots:
            parent = frames[frame["args"]["Python parent id"]]
            assert parent["ts"] <= frame["ts"]
            assert frame["ts"] + frame["dur"] <= parent["ts"] + parent["dur"]


def test_optional_events_are_off_by_default(tmp_path: Path) -> None:
    """Memory, Python, sync events, graphs and lost launches appear only where asked for."""
    truth = truth_of(write_job(tmp_path, SMALL))
    wanted = {"cpu_instant_event", "python_function", "cuda_sync"}
    for rank in truth.ranks:
        assert not wanted & set(rank.events)
        assert sum(o.count for o in rank.all.ops) == sum(c.count for c in rank.all.launches)
        assert "cudaGraphLaunch" not in {launch.call for launch in rank.all.launches}


def test_truth_is_plain_json(job: Job) -> None:
    """The truth survives JSON."""
    plain = truth_of(job).to_json()
    again = json.loads(json.dumps(plain))
    assert again["ranks"] == plain["ranks"]
    assert again["slow_kernels"] == {"1": 1.5}


@pytest.mark.parametrize("wanted", [10_000, 60_000])
def test_size_is_a_knob(tmp_path: Path, wanted: int) -> None:
    """A job can be asked for by its number of events."""
    spec = spec_for_events(wanted, JobSpec(ranks=1, python_stacks=True, memory_events=True))
    assert write_job(tmp_path, spec, truth=False).events[0] == pytest.approx(wanted, rel=0.05)


def test_memory_does_not_grow_with_steps(tmp_path: Path) -> None:
    """Writing ten times the steps takes no more memory: one step is held at a time."""

    def peak(steps: int) -> int:
        tracemalloc.start()
        write_job(tmp_path / str(steps), replace(SMALL, steps=steps), truth=False)
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
    """A job that cannot be simulated is refused when it is described."""
    with pytest.raises(ValueError, match=message):
        JobSpec(**wrong)


def test_an_empty_wish_is_refused() -> None:
    """No job has fewer than one event."""
    with pytest.raises(ValueError, match="at least 1"):
        spec_for_events(0)
